/** Request targets with a scheme and an authority, as clients of forward proxies send them. */
import type { IncomingMessage } from 'node:http';

/** A target that names its host. */
export interface AbsoluteTarget {
  /** The host, and the port if there is one. */
  readonly authority: string;
  /** Path and query, byte for byte. */
  readonly target: string;
}

/** An authority has no user: a URL with one is used for deception, and never needed here (RFC 9110, section 4.2.4). */
const absoluteForm = /^https?:\/\/([\w.~:[\]-]+)((?:[/?][^#]*)?)$/i;

/** Whether a target has a scheme. */
const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i;

/** Parses a target with a scheme. Returns `undefined` if it has none, and `invalid` if it cannot be served. */
export function parseAbsoluteForm(target: string): AbsoluteTarget | 'invalid' | undefined {
  if (!hasScheme.test(target)) return undefined;
  const [, authority, rest = ''] = absoluteForm.exec(target) ?? [];
  if (authority === undefined) return 'invalid';
  return { authority, target: rest.startsWith('/') ? rest : `/${rest}` };
}

/**
 * Rewrites a request with an absolute target to an ordinary request: the host in the target replaces the `Host` header (RFC 9112,
 * section 3.2.2). Servers must accept such requests; handlers and backends see only ordinary requests.
 *
 * @returns whether the request can be served
 */
export function normalizeTarget(request: IncomingMessage): boolean {
  const absolute = parseAbsoluteForm(request.url ?? '');
  if (absolute === 'invalid') return false;
  if (!absolute) return true;
  const { rawHeaders, headers } = request;
  const at = rawHeaders.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'host');
  if (at < 0) rawHeaders.push('Host', absolute.authority);
  else rawHeaders[at + 1] = absolute.authority;
  headers.host = absolute.authority;
  request.url = absolute.target;
  return true;
}
