/** The head of an HTTP/2 request, as a server for HTTP/1.1 would have read it. */
import type { IncomingHttpHeaders } from 'node:http';
import { METHODS } from '../node-http.ts';

export interface RequestHead {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value. */
  readonly rawHeaders: string[];
}

/** The methods that Node's HTTP/1.1 server accepts, without CONNECT, which asks a proxy for a connection to any host. */
const methods: ReadonlySet<string> = new Set(METHODS.filter((method) => method !== 'CONNECT'));

/** Headers of a single HTTP/1.1 connection: an HTTP/2 message that has one is malformed (RFC 9113, section 8.2.2). */
export const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/**
 * Translates a head. Returns `undefined` if the request is malformed, or if two servers could read it differently.
 *
 * @param raw - name, value, name, value, with pseudo-headers
 * @param hasBody - whether a body follows the head
 */
export function requestHead(raw: readonly string[], hasBody: boolean): RequestHead | undefined {
  const pseudo: Record<string, string> = {};
  const fields: [name: string, value: string][] = [];
  const crumbs: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]];
    if (name.startsWith(':')) pseudo[name] = value;
    else if (connectionHeaders.has(name)) return undefined;
    // Clients may send each cookie as a separate header (RFC 9113, section 8.2.3).
    else if (name === 'cookie') crumbs.push(value);
    else fields.push([name, value]);
  }
  const method = pseudo[':method'] ?? '';
  const url = pseudo[':path'] ?? '';
  const host = hostOf(pseudo[':authority'], fields);
  if (!methods.has(method) || url === '' || host === undefined) return undefined;
  const all: [name: string, value: string][] = [['host', host], ...fields.filter(([name]) => name !== 'host')];
  if (crumbs.length > 0) all.push(['cookie', crumbs.join('; ')]);
  if (hasBody && !fields.some(([name]) => name === 'content-length')) all.push(['transfer-encoding', 'chunked']);
  return { method, url, headers: joined(all), rawHeaders: all.flat() };
}

/** The host of a request, or `undefined` if it names none, or two different hosts. */
function hostOf(authority: string | undefined, fields: readonly (readonly [string, string])[]): string | undefined {
  const hosts = fields.flatMap(([name, value]) => (name === 'host' ? [value] : []));
  if (authority !== undefined) hosts.push(authority);
  const [host = ''] = hosts;
  // A user in front of the host is not allowed (RFC 9113, section 8.3.1), and servers disagree about the host in that case.
  return host !== '' && !host.includes('@') && hosts.every((each) => each === host) ? host : undefined;
}

/** Headers that occur once: Node's server for HTTP/1.1 keeps the first one. */
const single: ReadonlySet<string> = new Set([
  'authorization',
  'content-length',
  'content-type',
  'host',
  'referer',
  'user-agent',
]);

function joined(fields: readonly (readonly [string, string])[]): IncomingHttpHeaders {
  const headers = Object.create(null) as Record<string, string>;
  for (const [name, value] of fields) {
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (!single.has(name)) headers[name] = `${before}, ${value}`;
  }
  return headers;
}
