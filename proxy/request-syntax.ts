/** What Node's parser accepts although other servers read it differently, or not at all. */
import type { IncomingMessage } from 'node:http';
import { pairs } from './headers.ts';

/** Node's parser accepts HTTP/0.9, whose requests are a line without headers, and HTTP/2.0 in the form of HTTP/1.1. */
const versions: ReadonlySet<string> = new Set(['1.0', '1.1']);

/** Node drops headers beyond 2,000, including those that frame the body. Half as many are more than enough. */
const maxHeaders = 1_000;

/**
 * Whether every server reads a request in the same way, as far as Node's parser does not see to it: one host, no coding but `chunked`,
 * and none in HTTP/1.0, which has no codings.
 */
export function hasOneReading(request: IncomingMessage): boolean {
  const { rawHeaders, headers, httpVersion } = request;
  const coding = headers['transfer-encoding'];
  if (!versions.has(httpVersion) || rawHeaders.length > 2 * maxHeaders) return false;
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return false;
  let hosts = 0;
  for (const [name] of pairs(rawHeaders)) if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0');
}
