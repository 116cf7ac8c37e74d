import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

const requestIds = new WeakMap<IncomingMessage, string>();

/** The ID of a request: made here, sent back as `x-request-id`, and in every log line about it. Never taken from the client. */
export function requestId(request: IncomingMessage, response?: ServerResponse): string {
  let id = requestIds.get(request);
  if (id === undefined) {
    id = randomUUID();
    requestIds.set(request, id);
    if (response && !response.headersSent) response.setHeader('x-request-id', id);
  }
  return id;
}
