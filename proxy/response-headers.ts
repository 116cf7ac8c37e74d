/** The headers that a client gets: the backend's own, without what only the platform may say. */
import { proxyErrorHeader } from '../contract/proxy-errors.ts';
import { hopByHop, isVerified, nominated, pairs } from './header-names.ts';
import type { RawHeaders } from './header-names.ts';
import { setsPlatformCookie } from './platform-credentials.ts';

/**
 * Headers that speak for a whole host. Many sessions share one, and perhaps the dashboard: none of them may wipe the others'
 * data, read reports about their URLs, take over their paths, or decide how the host is reached.
 */
const hostWide: ReadonlySet<string> = new Set([
  'alt-svc',
  'clear-site-data',
  'nel',
  'report-to',
  'service-worker-allowed',
  'strict-transport-security',
]);

/** Part of the message's frame: nominating it in `Connection` does not take it out. */
const neverNominated: ReadonlySet<string> = new Set(['content-length']);

const domainAttribute = /;\s*domain\s*=[^;]*/gi;

/** With a value that is none, a browser limits the cookie to where it comes from, which is the session. */
const pathAttribute = /(;[ \t]*path[ \t]*=[ \t]*)(\/[^;]*)/gi;

/**
 * A backend's headers as the client gets them, in their order and spelling, duplicates included.
 *
 * @param prefix - what stands before the backend's paths in those of the client
 */
export function responseHeaders(rawHeaders: RawHeaders, prefix: string): string[] {
  const dropped = nominated(rawHeaders);
  const headers: string[] = [];
  for (const [name, value] of pairs(rawHeaders)) {
    const lower = name.toLowerCase();
    if (hopByHop.has(lower) || (dropped.has(lower) && !neverNominated.has(lower)) || isForbidden(lower)) continue;
    if (lower !== 'set-cookie') headers.push(name, value);
    else if (!setsPlatformCookie(value)) headers.push(name, ownCookie(value, prefix));
  }
  return headers;
}

/** The trailers of a message, either way, without what only the platform may say. */
export function passedTrailers(rawTrailers: RawHeaders): [string, string][] {
  return [...pairs(rawTrailers)].filter(
    ([name]) => !hopByHop.has(name.toLowerCase()) && !isForbidden(name.toLowerCase()) && !/^set-cookie$/i.test(name),
  );
}

function isForbidden(name: string): boolean {
  return name === proxyErrorHeader || hostWide.has(name) || isVerified(name);
}

/**
 * A cookie for the session alone: with `Domain` it could plant cookies on the hosts beside this one, and with a `Path` of its own
 * choice on the sessions beside it, which share the host.
 */
function ownCookie(value: string, prefix: string): string {
  return value
    .replace(domainAttribute, '')
    .replace(pathAttribute, (attribute, name: string, path: string) =>
      `${path}/`.startsWith(`${prefix}/`) ? attribute : `${name}${prefix}${path}`,
    );
}
