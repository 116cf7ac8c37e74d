/** The headers of a response to a client: those of the backend, without reserved ones. */
import { proxyErrorHeader } from '../contract/proxy-errors.ts';
import {
  connectionOptions,
  hopByHop,
  isNeverTrailer,
  isVerified,
  pairs,
  perName,
  setsPlatformCookie,
} from './headers.ts';
import type { RawHeaders } from './headers.ts';
import { mapCookie, mapLinks, mapReference, mapRefresh, withoutSiteWide } from './session-view.ts';
import type { SessionView } from './session-view.ts';

/**
 * Headers that affect a whole host. Many sessions share a host, perhaps with a dashboard. No session may clear the data of others,
 * receive reports about their URLs, or change where the host is reached.
 */
const hostWide: ReadonlySet<string> = new Set(['alt-svc', 'nel', 'report-to']);

/** The URL of a session gives access to it: other sites must not read it, not even its host. An application may set its own policy. */
export const defaultReferrerPolicy = 'same-origin';

const policyName = 'referrer-policy';

/** Frames the message. It is forwarded even if it is a connection option. */
const neverOptions: ReadonlySet<string> = new Set(['content-length']);

/** Headers that affect a whole origin or host. In the host form, it belongs to the session. */
const originWide: ReadonlySet<string> = new Set([
  'clear-site-data',
  'service-worker-allowed',
  'strict-transport-security',
]);

/** How a header of a backend is handled. A function translates its value, or drops the header. */
export type ResponseRule =
  | 'forward'
  | 'drop'
  | 'origin-wide'
  | ((value: string, view: SessionView) => string | undefined);

/** Headers that name paths of the application, and how they are translated. */
const mapped: ReadonlyMap<string, ResponseRule> = new Map<string, ResponseRule>([
  ['location', mapReference],
  ['content-location', mapReference],
  ['link', mapLinks],
  ['refresh', mapRefresh],
  ['set-cookie', (value, view) => (setsPlatformCookie(value) ? undefined : mapCookie(value, view))],
]);

/** The rule for a header of a backend, by its name in any case. */
export const responseRuleOf = perName((name): ResponseRule => {
  if (hopByHop.has(name) || isForbidden(name)) return 'drop';
  return originWide.has(name) ? 'origin-wide' : (mapped.get(name) ?? 'forward');
});

/** Returns the value of a backend's header for the client, `undefined` if the client does not get the header. */
export function responseValue(rule: ResponseRule, name: string, value: string, view: SessionView): string | undefined {
  if (typeof rule === 'function') return rule(value, view);
  if (rule !== 'origin-wide') return rule === 'forward' ? value : undefined;
  if (view.prefix !== '') return undefined;
  return name.toLowerCase() === 'clear-site-data' ? withoutSiteWide(value) : value;
}

/** Returns a backend's headers as the client of a session sees them, in their order and spelling, including duplicates. */
export function responseHeaders(rawHeaders: RawHeaders, view: SessionView): string[] {
  const dropped = connectionOptions(rawHeaders);
  const headers: string[] = [];
  for (const [name, value] of pairs(rawHeaders)) {
    const lower = name.toLowerCase();
    if (dropped.has(lower) && !neverOptions.has(lower)) continue;
    const forwarded = responseValue(responseRuleOf(name), name, value, view);
    if (forwarded !== undefined) headers.push(name, forwarded);
  }
  return headers;
}

/** Adds the default `Referrer-Policy`, unless the application has set its own. */
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
