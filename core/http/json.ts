/** JSON answers. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { WholeAnswer } from './linger.ts';

/**
 * Answers with JSON and exactly `Content-Type: application/json`: existing clients compare the header as text, and Express's own
 * `json()` adds a charset.
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
  // A string, because Node sends it together with the head.
  response.end(text);
}

/** The answer that `sendJson` would send. */
export function jsonAnswer(status: number, body: unknown): WholeAnswer {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) };
}
