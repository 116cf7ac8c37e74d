/** The headers of a request to a backend: those of the client, without reserved ones, and those that the platform adds. */
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { connectionTokenPattern } from '../model/route.ts';
import type { Route } from '../model/route.ts';
import { tokenOfLabel } from '../model/session-host.ts';
import type { SessionView } from './session-view.ts';
import {
  canonicalName,
  connectionOptions,
  hopByHop,
  isPlatformAuthorization,
  isVerified,
  pairs,
  perName,
  withoutPlatformCookies,
} from './headers.ts';

/** Headers by name. A repeated header has several values. */
export type OutgoingHeaders = Record<string, string | string[]>;

/** The head of a client's request. */
export interface RequestHead extends Pick<IncomingMessage, 'method' | 'rawHeaders' | 'headers'> {
  /** The address of the client, or of the load balancer. */
  readonly remoteAddress: string | undefined;
  readonly isEncrypted: boolean;
}

/** The values that the platform adds to a request. */
export interface Verified {
  readonly route: Route;
  readonly token: string;
  /** How the client sees the session. */
  readonly view: SessionView;
  readonly secret: string;
  /** Whether a load balancer has set the forwarding headers of the request. */
  readonly behindLoadBalancer: boolean;
}

/** Headers that frame or address the message. They are forwarded even if they are connection options. */
const neverOptions: ReadonlySet<string> = new Set(['host', 'content-length']);

/** A CGI program sees `Proxy` as `HTTP_PROXY`, and would send its own requests through the client (https://httpoxy.org). */
const neverForwarded: ReadonlySet<string> = new Set(['expect', 'http2-settings', 'proxy']);

/** Methods whose requests usually have a body. If there is none, `Content-Length: 0` is sent. */
export const methodsWithBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** The head of a request that Node.js has parsed. */
export function headOf({ method, rawHeaders, headers, socket }: IncomingMessage): RequestHead {
  const isEncrypted = (socket as Partial<TLSSocket>).encrypted === true;
  return { method, rawHeaders, headers, remoteAddress: socket.remoteAddress, isEncrypted };
}

/** Returns the headers to send to the backend, for a request that is forwardable (`request-syntax.ts`). */
export function requestHeaders(request: RequestHead, verified: Verified): OutgoingHeaders {
  const headers = clientHeaders(request, verified);
  setFraming(headers, request);
  for (const [name, value] of addedHeaders(request, verified)) headers[name] = value;
  return headers;
}

function clientHeaders(request: RequestHead, verified: Verified): OutgoingHeaders {
  const dropped = connectionOptions(request.rawHeaders);
  const names = new Map<string, string>();
  const headers = Object.create(null) as OutgoingHeaders;
  for (const [name, value] of pairs(request.rawHeaders)) {
    const lower = name.toLowerCase();
    if (dropped.has(lower) && !neverOptions.has(lower)) continue;
    const forwarded = forwardedValue(requestRuleOf(name), value, verified);
    if (forwarded === undefined) continue;
    const key = names.get(lower) ?? name;
    names.set(lower, key);
    add(headers, key, forwarded);
  }
  return headers;
}

/** How a header of a client is handled. Some rules depend on its value. */
export type RequestRule = 'forward' | 'drop' | 'cookie' | 'authorization' | 'referer';

/** The rule for a header of a client, by its name in any case. */
export const requestRuleOf = perName((name): RequestRule => {
  if (hopByHop.has(name) || neverForwarded.has(name) || isReserved(name)) return 'drop';
  return name === 'cookie' || name === 'authorization' || name === 'referer' ? name : 'forward';
});

/** Whether only the platform, or a proxy in front of it, may set a header. */
function isReserved(name: string): boolean {
  const canonical = canonicalName(name);
  return (
    isVerified(name) || canonical.startsWith('x-forwarded-') || canonical === 'forwarded' || canonical === 'x-real-ip'
  );
}

/** The value of a client's header for the backend, `undefined` if it is not forwarded. */
export function forwardedValue(
  rule: RequestRule,
  value: string,
  { token, route }: Pick<Verified, 'token' | 'route'>,
): string | undefined {
  if (rule === 'forward') return value;
  if (rule === 'cookie') return withoutPlatformCookies(value);
  if (rule === 'authorization') {
    return isPlatformAuthorization(value) || route.bearerHash !== undefined ? undefined : value;
  }
  return rule === 'referer' ? withoutOtherToken(value, token) : undefined;
}

/**
 * A browser that follows a link to another session may send the first session's URL, which contains its token: in the path form,
 * where sessions share an origin, or as its host.
 */
function withoutOtherToken(referer: string, token: string): string | undefined {
  const [, origin = '', host = '', segment = ''] = /^([a-z]+:\/\/([^/?#]*))\/?([^/?#]*)/i.exec(referer) ?? [];
  const labelled = tokenOfLabel(host.slice(0, Math.max(0, host.indexOf('.'))));
  if (labelled !== undefined) return labelled === token ? referer : undefined;
  return connectionTokenPattern.test(segment) && segment !== token ? `${origin}/` : referer;
}

function setFraming(headers: OutgoingHeaders, request: RequestHead): void {
  if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
  else if (request.headers['content-length'] === undefined && methodsWithBody.has(request.method ?? '')) {
    headers['content-length'] = '0';
  }
  if (/(?:^|,)\s*trailers\s*(?:$|[,;])/i.test(String(request.headers.te ?? ''))) headers['te'] = 'trailers';
}

/** The headers that the platform adds to a request. */
export function addedHeaders(
  { headers, remoteAddress, isEncrypted }: Pick<RequestHead, 'headers' | 'remoteAddress' | 'isEncrypted'>,
  { route, secret, view, behindLoadBalancer }: Omit<Verified, 'token'>,
): [name: string, value: string][] {
  const sent = behindLoadBalancer ? headers : {};
  const client = remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '') ?? 'unknown';
  const before = sent['x-forwarded-for'];
  const host = sent['x-forwarded-host'] ?? headers.host;
  const added: [string, string][] = [
    ['x-forwarded-for', before === undefined ? client : `${String(before)}, ${client}`],
    ['x-forwarded-proto', String(sent['x-forwarded-proto'] ?? (isEncrypted ? 'https' : 'http'))],
  ];
  if (host !== undefined) added.push(['x-forwarded-host', String(host)]);
  if (view.prefix !== '') added.push(['x-forwarded-prefix', view.prefix]);
  // Node writes each character of a header as one byte, so UTF-8 is passed as Latin-1.
  if (route.user !== undefined) added.push(['x-verified-username', Buffer.from(route.user).toString('latin1')]);
  if (route.userData !== undefined) added.push(['x-verified-user-data', route.userData]);
  added.push(['x-verified-secret', secret]);
  return added;
}

function add(headers: OutgoingHeaders, name: string, value: string): void {
  const before = headers[name];
  if (before === undefined) headers[name] = value;
  else if (Array.isArray(before)) before.push(value);
  else headers[name] = [before, value];
}
