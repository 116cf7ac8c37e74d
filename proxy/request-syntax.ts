/** Rejects requests that Node's parser accepts, but that other servers read differently or not at all. */
import type { IncomingMessage } from 'node:http';
import { pairs } from './headers.ts';

/** Node's parser accepts HTTP/0.9, whose requests are a line without headers, and HTTP/2.0 in the form of HTTP/1.1. */
const versions: ReadonlySet<string> = new Set(['1.0', '1.1']);

/** Node drops headers beyond 2,000, including those that frame the body. Half as many are more than enough. */
export const maxHeaders = 1_000;

/** Methods whose responses repeat the request, and so would disclose the platform's headers to the client. */
const echoingMethods: ReadonlySet<string> = new Set(['TRACE', 'TRACK']);

/** In HTTP/1.0 (RFC 1945), these have no body: some servers read it as the next request. haproxy rejects it, too. */
const bodilessMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/**
 * Whether a request may be forwarded: every server reads it in the same way, and no server echoes it. Node's parser does not check
 * that it has one host, no coding but `chunked` (servers would have to decode it), and none in HTTP/1.0, which has no codings.
 */
export function isForwardable(request: IncomingMessage): boolean {
  const { method = '', rawHeaders, headers, httpVersion } = request;
  const coding = headers['transfer-encoding'];
  if (echoingMethods.has(method) || !versions.has(httpVersion) || rawHeaders.length > 2 * maxHeaders) return false;
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return false;
  if (httpVersion === '1.0' && bodilessMethods.has(method) && Number(headers['content-length'] ?? 0) > 0) return false;
  let hosts = 0;
  for (const [name] of pairs(rawHeaders)) if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0');
}
