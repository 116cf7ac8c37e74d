/** The headers of a response to a client: those of the backend, without reserved ones. */
import { proxyErrorHeader } from '../contract/proxy-errors.ts';
import { connectionOptions, hopByHop, isVerified, pairs, setsPlatformCookie } from './headers.ts';
import type { RawHeaders } from './headers.ts';

/**
 * Headers that affect a whole host. Many sessions share a host, perhaps with a dashboard. No session may clear the data of others,
 * receive reports about their URLs, take over their paths, or change how the host is reached.
 */
const hostWide: ReadonlySet<string> = new Set([
  'alt-svc',
  'clear-site-data',
  'nel',
  'report-to',
  'service-worker-allowed',
  'strict-transport-security',
]);

/** Frames the message. It is forwarded even if it is a connection option. */
const neverOptions: ReadonlySet<string> = new Set(['content-length']);

const domainAttribute = /;\s*domain\s*=[^;]*/gi;

/** Only absolute paths: with any other value, a browser limits the cookie to the path of the response, which is in the session. */
const pathAttribute = /(;[ \t]*path[ \t]*=[ \t]*)(\/[^;]*)/gi;

/**
 * Returns a backend's headers for the client, in their order and spelling, including duplicates.
 *
 * @param prefix - the path of the session, which precedes the backend's own paths in the client's URLs
 */
export function responseHeaders(rawHeaders: RawHeaders, prefix: string): string[] {
  const dropped = connectionOptions(rawHeaders);
  const headers: string[] = [];
  for (const [name, value] of pairs(rawHeaders)) {
    const lower = name.toLowerCase();
    if (hopByHop.has(lower) || (dropped.has(lower) && !neverOptions.has(lower)) || isForbidden(lower)) continue;
    if (lower !== 'set-cookie') headers.push(name, value);
    else if (!setsPlatformCookie(value)) headers.push(name, sessionCookie(value, prefix));
  }
  return headers;
}

/** Returns the trailers of a request or response, without reserved ones. */
export function forwardedTrailers(rawTrailers: RawHeaders): [string, string][] {
  return [...pairs(rawTrailers)].filter(
    ([name]) => !hopByHop.has(name.toLowerCase()) && !isForbidden(name.toLowerCase()) && !/^set-cookie$/i.test(name),
  );
}

function isForbidden(name: string): boolean {
  return name === proxyErrorHeader || hostWide.has(name) || isVerified(name);
}

/**
 * Limits a cookie to the session. With `Domain`, a backend could set cookies for neighbouring hosts, and with any `Path`, for the
 * other sessions on this host.
 */
function sessionCookie(value: string, prefix: string): string {
  return value
    .replace(domainAttribute, '')
    .replace(pathAttribute, (attribute, name: string, path: string) =>
      `${path}/`.startsWith(`${prefix}/`) ? attribute : `${name}${prefix}${path}`,
    );
}
