/** The headers of a response to a client: those of the backend, without reserved ones. */
import { proxyErrorHeader } from '../contract/proxy-errors.ts';
import { connectionOptions, hopByHop, isNeverTrailer, isVerified, pairs, setsPlatformCookie } from './headers.ts';
import type { RawHeaders } from './headers.ts';
import { mapCookie, mapLinks, mapReference, mapRefresh, withoutSiteWide } from './session-view.ts';
import type { SessionView } from './session-view.ts';

/**
 * Headers that affect a whole host. Many sessions share a host, perhaps with a dashboard. No session may clear the data of others,
 * receive reports about their URLs, take over their paths, or change how the host is reached.
 */
const hostWide: ReadonlySet<string> = new Set(['alt-svc', 'nel', 'report-to', 'strict-transport-security']);

/** The URL of a session gives access to it: other sites must not read it, not even its host. An application may set its own policy. */
const defaultReferrerPolicy = 'same-origin';

const policyName = 'referrer-policy';

/** Frames the message. It is forwarded even if it is a connection option. */
const neverOptions: ReadonlySet<string> = new Set(['content-length']);

/** Affect a whole origin, which in the host form is the session's own. */
const originWide: ReadonlySet<string> = new Set(['clear-site-data', 'service-worker-allowed']);

/** Headers that name paths of the application, and how they are translated. */
const mapped: ReadonlyMap<string, (value: string, view: SessionView) => string> = new Map([
  ['location', mapReference],
  ['content-location', mapReference],
  ['link', mapLinks],
  ['refresh', mapRefresh],
  ['set-cookie', mapCookie],
  ['clear-site-data', withoutSiteWide],
]);

/** Returns a backend's headers as the client of a session sees them, in their order and spelling, including duplicates. */
export function responseHeaders(rawHeaders: RawHeaders, view: SessionView): string[] {
  const dropped = connectionOptions(rawHeaders);
  const headers: string[] = [];
  for (const [name, value] of pairs(rawHeaders)) {
    const lower = name.toLowerCase();
    if (hopByHop.has(lower) || (dropped.has(lower) && !neverOptions.has(lower)) || isForbidden(lower)) continue;
    if (originWide.has(lower) && view.prefix !== '') continue;
    if (lower === 'set-cookie' && setsPlatformCookie(value)) continue;
    headers.push(name, mapped.get(lower)?.(value, view) ?? value);
  }
  return headers;
}

/** Adds the default for what a browser tells other sites about the URL of a page, unless the application has set its own. */
export function withReferrerPolicy(headers: string[]): string[] {
  const isSet = headers.some(
    (name, i) => i % 2 === 0 && name.length === policyName.length && name.toLowerCase() === policyName,
  );
  return isSet ? headers : [...headers, 'Referrer-Policy', defaultReferrerPolicy];
}

/** Returns the trailers of a request or response, without reserved ones. */
export function forwardedTrailers(rawTrailers: RawHeaders): [string, string][] {
  return [...pairs(rawTrailers)].filter(([name]) => {
    const lower = name.toLowerCase();
    return !hopByHop.has(lower) && !isForbidden(lower) && !isNeverTrailer(lower);
  });
}

function isForbidden(name: string): boolean {
  return name === proxyErrorHeader || hostWide.has(name) || isVerified(name);
}
