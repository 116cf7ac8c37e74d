/** JSON as answers. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { WholeAnswer } from './linger.ts';

/**
 * Answers with JSON and exactly `Content-Type: application/json`: existing clients compare it as a text, so Express's own
 * `json()`, which adds a charset, will not do.
 */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers });
  // A text, because Node sends it together with the head.
  response.end(text);
}

/** What `sendJson` would send. */
export function jsonAnswer(status: number, body: unknown): WholeAnswer {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) };
}
