/** The headers that a backend gets: the client's own, without what it may not say, and with what the platform says. */
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { connectionTokenPattern } from '../model/route.ts';
import type { Route } from '../model/route.ts';
import { ProxyFailure } from './failure.ts';
import { canonicalName, hopByHop, isVerified, nominated, pairs } from './header-names.ts';
import { isPlatformAuthorization, withoutPlatformCookies } from './platform-credentials.ts';

/** Headers by name; a name that came several times has several values. */
export type OutgoingHeaders = Record<string, string | string[]>;

/** What the platform knows about a request. */
export interface Verified {
  readonly route: Route;
  readonly token: string;
  readonly secret: string;
  /** Whether what the client says about forwarding is a load balancer's word. */
  readonly behindLoadBalancer: boolean;
}

/** Part of the message's frame or address: nominating these in `Connection` does not take them out. */
const neverNominated: ReadonlySet<string> = new Set(['host', 'content-length']);

/** `Proxy` is `HTTP_PROXY` to a CGI program, which then sends its own requests by way of the client (https://httpoxy.org). */
const neverForwarded: ReadonlySet<string> = new Set(['expect', 'http2-settings', 'proxy']);

/** Methods whose requests have a body unless they say otherwise; to them, "no body" must be said. */
const methodsWithBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** Node has been seen to forget headers beyond 2,000, those that frame the body included. Nobody needs half as many. */
const maxHeaders = 1_000;

/** Its answer repeats the request, and so what the platform tells the backend and nobody else. */
const echoingMethods: ReadonlySet<string> = new Set(['TRACE', 'TRACK']);

/**
 * The headers to send to the backend. Throws `bad-request` where the message could be understood in two ways,
 * or must not be sent on.
 */
export function requestHeaders(request: IncomingMessage, verified: Verified): OutgoingHeaders {
  if (request.rawHeaders.length > 2 * maxHeaders) throw new ProxyFailure('bad-request');
  if (echoingMethods.has(request.method ?? '')) throw new ProxyFailure('bad-request');
  const headers = clientHeaders(request, verified);
  setFraming(headers, request);
  setForwarded(headers, request, verified);
  setVerified(headers, verified);
  return headers;
}

function clientHeaders(request: IncomingMessage, verified: Verified): OutgoingHeaders {
  const dropped = nominated(request.rawHeaders);
  const names = new Map<string, string>();
  const headers = Object.create(null) as OutgoingHeaders;
  for (const [name, value] of pairs(request.rawHeaders)) {
    const lower = name.toLowerCase();
    if (hopByHop.has(lower) || neverForwarded.has(lower)) continue;
    if (dropped.has(lower) && !neverNominated.has(lower)) continue;
    const passed = isReserved(lower) ? undefined : passedValue(lower, value, verified.token);
    if (passed === undefined) continue;
    if (lower === 'host' && names.has(lower)) throw new ProxyFailure('bad-request');
    const key = names.get(lower) ?? name;
    names.set(lower, key);
    add(headers, key, passed);
  }
  return headers;
}

/** Headers that only the platform, or a proxy before it, may write. */
function isReserved(name: string): boolean {
  const canonical = canonicalName(name);
  return (
    isVerified(name) || canonical.startsWith('x-forwarded-') || canonical === 'forwarded' || canonical === 'x-real-ip'
  );
}

function passedValue(name: string, value: string, token: string): string | undefined {
  if (name === 'cookie') return withoutPlatformCookies(value);
  if (name === 'authorization') return isPlatformAuthorization(value) ? undefined : value;
  if (name === 'referer') return withoutOtherToken(value, token);
  return value;
}

/** All sessions have one origin, so a browser that goes from one to another tells the first one's URL, token and all. */
function withoutOtherToken(referer: string, token: string): string {
  const [, origin = '', segment = ''] = /^([a-z]+:\/\/[^/?#]*)\/([^/?#]*)/i.exec(referer) ?? [];
  return connectionTokenPattern.test(segment) && segment !== token ? `${origin}/` : referer;
}

function setFraming(headers: OutgoingHeaders, request: IncomingMessage): void {
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined) {
    // Other codings would have to be undone first; nobody sends them.
    if (coding.toLowerCase() !== 'chunked') throw new ProxyFailure('bad-request');
    headers['transfer-encoding'] = 'chunked';
  } else if (request.headers['content-length'] === undefined && methodsWithBody.has(request.method ?? '')) {
    headers['content-length'] = '0';
  }
  if (/(?:^|,)\s*trailers\s*(?:$|[,;])/i.test(String(request.headers.te ?? ''))) headers['te'] = 'trailers';
}

function setForwarded(headers: OutgoingHeaders, request: IncomingMessage, verified: Verified): void {
  const said = verified.behindLoadBalancer ? request.headers : {};
  const client = request.socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '') ?? 'unknown';
  const before = said['x-forwarded-for'];
  const encrypted = (request.socket as Partial<TLSSocket>).encrypted === true;
  headers['x-forwarded-for'] = before === undefined ? client : `${String(before)}, ${client}`;
  headers['x-forwarded-proto'] = String(said['x-forwarded-proto'] ?? (encrypted ? 'https' : 'http'));
  const host = said['x-forwarded-host'] ?? request.headers.host;
  if (host !== undefined) headers['x-forwarded-host'] = String(host);
  headers['x-forwarded-prefix'] = `/${verified.token}`;
}

function setVerified(headers: OutgoingHeaders, { route, secret }: Verified): void {
  // Node writes each character of a header as one byte: this is how UTF-8 gets through it unharmed.
  if (route.user !== undefined) headers['x-verified-username'] = Buffer.from(route.user).toString('latin1');
  if (route.userData !== undefined) headers['x-verified-user-data'] = route.userData;
  headers['x-verified-secret'] = secret;
}

function add(headers: OutgoingHeaders, name: string, value: string): void {
  const before = headers[name];
  if (before === undefined) headers[name] = value;
  else if (Array.isArray(before)) before.push(value);
  else headers[name] = [before, value];
}
