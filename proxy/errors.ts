/** The proxy's own errors: thrown as `ProxyError`, answered with a page for browsers and with JSON for other clients. */
import type { IncomingMessage } from 'node:http';
import { STATUS_CODES, ServerResponse } from '../core/http/node-http.ts';
import { proxyErrorHeader, proxyErrors } from '../contract/proxy-errors.ts';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import { answerEarly } from '../core/http/linger.ts';
import { escapeHtml, htmlPage } from '../core/http/page.ts';
import { requestId } from '../core/http/request-id.ts';

/** An error with a code of the proxy's catalogue. It never contains a token. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code: ProxyErrorCode;

  constructor(code: ProxyErrorCode, options?: ErrorOptions) {
    super(proxyErrors[code].message, options);
    this.code = code;
  }
}

/** The error for a backend that has ended, or that is stopping before it was ready. */
export function goneError(wasReady: boolean, options?: ErrorOptions): ProxyError {
  return new ProxyError(wasReady ? 'gone' : 'not-started', options);
}

/** Whether an error says that a backend has ended. */
export function isGone(error: unknown): boolean {
  return error instanceof ProxyError && (error.code === 'gone' || error.code === 'not-started');
}

/** The error for a backend that cannot be reached, or that does not send a valid answer. A `ProxyError` is returned unchanged. */
export function unreachableError(cause: unknown): ProxyError {
  return cause instanceof ProxyError ? cause : new ProxyError('backend-unreachable', { cause });
}

/** Any error as a `ProxyError`. An unexpected one is `unavailable`, because the session itself may be fine. */
export function asProxyError(error: unknown): ProxyError {
  return error instanceof ProxyError ? error : new ProxyError('unavailable', { cause: error });
}

/** Transient errors: most stores and buses recover within seconds, and a start makes progress. */
const transient: ReadonlySet<ProxyErrorCode> = new Set(['unavailable', 'starting']);

const retryAfterSeconds = 2;

/** The answer with an error: a page if the client accepts one, else JSON. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

interface FailedRequest {
  readonly id: string;
  /** The `Accept` header. */
  readonly accept: string | undefined;
  /** Whether the request was read to its end. */
  readonly isComplete: boolean;
}

/** The answer to a request that failed. */
export function errorAnswer(code: ProxyErrorCode, { id, accept, isComplete }: FailedRequest): ErrorAnswer {
  const { status, message } = proxyErrors[code];
  const html = accept?.includes('text/html') ?? false;
  const body = html ? errorPage(code, id) : JSON.stringify({ error: { code, message, status, id } });
  const headers = {
    [proxyErrorHeader]: code,
    'content-type': html ? 'text/html; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    vary: 'accept',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-request-id': id,
    ...(html && { 'content-security-policy': pagePolicy }),
    ...(code === 'unauthorized' && { 'www-authenticate': 'Bearer' }),
    ...(transient.has(code) && { 'retry-after': String(retryAfterSeconds) }),
    // The rest of the request is not read, and a client must not reuse its connection to a proxy that is closing. After a bad request,
    // the client and the proxy may not agree where the next one begins.
    ...((!isComplete || code === 'unavailable' || code === 'bad-request') && { connection: 'close' }),
  };
  return { status, headers, body };
}

interface Unanswered {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborts when the response is closed. */
  readonly closed: AbortSignal;
}

/**
 * Answers with an error, or destroys a response that has begun. Over HTTP/1, the rest of a body is read for a while: closing a connection
 * with unread bytes resets it, and a client that sends its whole body first would lose the answer.
 */
export function answerError({ request, response, closed }: Unanswered, code: ProxyErrorCode): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { accept } = request.headers;
  const { status, headers, body } = errorAnswer(code, { id: requestId(request), accept, isComplete: request.complete });
  // Sets the reason phrase, because an earlier attempt to send a backend's answer may have set another.
  response.statusMessage = STATUS_CODES[status] ?? '';
  // A stream of HTTP/2 ends alone.
  if (request.complete || !(response instanceof ServerResponse)) response.writeHead(status, headers).end(body);
  else void answerEarly({ request, response }, { status, headers, body: Buffer.from(body) }, closed);
}

const pageStyle = `
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 20vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
p { opacity: .7 }
`;

/** The page contains nothing from the request. */
function errorPage(code: ProxyErrorCode, id: string): string {
  const { status, message } = proxyErrors[code];
  const main = `<h1>${escapeHtml(message)}</h1>\n<p>${status} ${code}, ${id}</p>`;
  return htmlPage({ title: message, style: pageStyle, main });
}

/** The page may not load or run anything, or be framed. */
const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
