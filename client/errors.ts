/** The error of every call that fails. */
import type { ServiceErrorCode } from './contract.ts';

/**
 * Codes of errors that the client detects itself. `Unreachable`: no response arrived. `TimedOut`: no response arrived in time.
 * `UnexpectedResponse`: the response is not from Berth, so the address may be wrong. `BackendEnded`: the backend ended before it was
 * ready.
 */
export type ClientErrorCode = 'Unreachable' | 'TimedOut' | 'UnexpectedResponse' | 'BackendEnded';

export interface BerthErrorDetails {
  /** The HTTP status, if a response arrived. */
  readonly status?: number | undefined;
  /** The ID of the request in the server's log. */
  readonly id?: string | undefined;
  /** How long the server asks clients to wait before they retry the request. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** A call that failed. Compare `code`: it is stable, the message is not. */
export class BerthError extends Error {
  /** A code of the API (`docs/errors.md`) or of the client. A newer server may send codes that this client does not list. */
  readonly code: ServiceErrorCode | ClientErrorCode | (string & {});
  readonly status: number | undefined;
  readonly id: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    code: ServiceErrorCode | ClientErrorCode | (string & {}),
    message: string,
    { status, id, retryAfterMs, cause }: BerthErrorDetails = {},
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.name = 'BerthError';
    this.code = code;
    this.status = status;
    this.id = id;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The error that a response reports. */
export async function errorOf(response: Response): Promise<BerthError> {
  const { status } = response;
  const retryAfterMs = retryAfter(response.headers.get('retry-after'));
  const reported = await reportedError(response);
  if (reported) {
    const { code, message, id } = reported;
    return new BerthError(code, message, { status, id, retryAfterMs });
  }
  return new BerthError('UnexpectedResponse', unexpected(status), { status, retryAfterMs });
}

async function reportedError(response: Response): Promise<{ code: string; message: string; id: string } | undefined> {
  const body: unknown = await response.json().catch(() => undefined);
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined;
  const { error } = body;
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, message, id } = error as Record<string, unknown>;
  if (typeof code !== 'string' || typeof message !== 'string') return undefined;
  return { code, message, id: typeof id === 'string' ? id : '' };
}

function unexpected(status: number): string {
  const what = status === 0 ? 'a redirect' : `HTTP status ${status}, which is not a response of Berth's API`;
  return `The server answered with ${what}. Check the address of the API`;
}

/** The header in milliseconds: it has seconds or a date (RFC 9110, section 10.2.3). */
export function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
