/** Rules for headers that apply to requests and responses alike. */
import type { IncomingMessage } from 'node:http';

/** Headers as Node reports them: name, value, name, value. */
export type RawHeaders = readonly string[];

/** Headers for a single connection, which a proxy does not forward (RFC 9110, section 7.6.1). */
export const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * A header's name as the least precise backends see it. CGI, WSGI and PHP map every punctuation character to the same one, so
 * that `X_Verified.Username` is `x-verified-username` to them.
 */
export function canonicalName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

/** Whether only the platform may send a header to a backend. */
export function isVerified(name: string): boolean {
  return canonicalName(name).startsWith('x-verified-');
}

/** Headers that frame, route, authenticate, control or describe a message, by their canonical names. */
const neverTrailers =
  /^(?:host|content-.*|transfer-encoding|authorization|cookie2?|set-cookie2?|www-authenticate|authentication-info|x-forwarded-.*|forwarded|x-real-ip|proxy|cache-control|expect|max-forwards|pragma|range|if-.*|age|date|expires|location|retry-after|vary|warning)$/;

/**
 * Whether a header must not be sent as a trailer (RFC 9110, section 6.5.1): some servers merge the trailers into the headers, past the
 * checks of the headers.
 */
export function isNeverTrailer(name: string): boolean {
  return neverTrailers.test(canonicalName(name));
}

/** The connection options of a message: the headers that its `Connection` headers declare as hop-by-hop (RFC 9110, section 7.6.1). */
export function connectionOptions(headers: RawHeaders): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [name, value] of pairs(headers)) {
    if (name.toLowerCase() !== 'connection') continue;
    for (const token of value.split(',')) names.add(token.trim().toLowerCase());
  }
  return names;
}

/** Names and values in order. */
export function* pairs(headers: RawHeaders): Generator<[name: string, value: string]> {
  for (let i = 0; i + 1 < headers.length; i += 2) yield [headers[i] as string, headers[i + 1] as string];
}

/** Names beyond this many are not common ones, but made up. */
const maxKnownNames = 500;

/** No common name is longer. */
const maxKnownNameLength = 64;

/** Caches the results of a function of a header's name in lower case, because nearly all requests have the same few names. */
export function perName<T>(compute: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const computed = compute(name.toLowerCase());
    if (name.length > maxKnownNameLength) return computed;
    if (known.size >= maxKnownNames) known.clear();
    // A copy, because a part of a text keeps the whole text in memory.
    known.set(Buffer.from(name, 'latin1').toString('latin1'), computed);
    return computed;
  };
}

/** Whether a request has a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether sending a request twice has the same effect as sending it once. */
export function isReplayable(method: string | undefined, hasBody: boolean): boolean {
  return (method === 'GET' || method === 'HEAD') && !hasBody;
}

// The platform's own credentials are removed in both directions: a browser sends the cookies of a host to all its ports, so a
// dashboard on the same host would disclose its login to every container.

/**
 * Cookies whose names begin with the platform's name. A browser sends a cookie that was set without a name (`=name=value`) as if it
 * had that name.
 */
const platformCookie = /^[\s=]*(?:__(?:host|secure)-)?berth[-_]/i;

/** A platform access token, possibly with the name of its account in front (`<account>.<secret>`). */
const platformToken = /(?:^|[\s.,:="])berth_/i;

/** The user and the password of a `Basic` authorization, such as that of the registry. */
const basic = /basic\s+([a-z0-9+/=_-]+)/gi;

/** A `Cookie` header without the platform's cookies; `undefined` if none is left. */
export function withoutPlatformCookies(cookies: string): string | undefined {
  if (!/berth/i.test(cookies)) return cookies;
  const others = cookies.split(';').filter((cookie) => !platformCookie.test(cookie));
  return others.length === 0 ? undefined : others.join(';').trim();
}

/** Whether an `Authorization` header contains a platform access token. */
export function isPlatformAuthorization(value: string): boolean {
  if (platformToken.test(value)) return true;
  return Array.from(value.matchAll(basic), ([, encoded = '']) =>
    Buffer.from(encoded, 'base64').toString('latin1'),
  ).some((login) => platformToken.test(login));
}

/** Whether a `Set-Cookie` header would set one of the platform's cookies. */
export function setsPlatformCookie(value: string): boolean {
  return platformCookie.test(value);
}
