import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

const requestIdKey = Symbol('request ID');

interface Identified extends IncomingMessage {
  [requestIdKey]?: string;
}

/** The ID of a request, for the header `x-request-id` and every log line about the request. Generated here: clients cannot choose it. */
export function requestId(request: IncomingMessage, response?: ServerResponse): string {
  const id = ((request as Identified)[requestIdKey] ??= randomUUID());
  if (response && !response.headersSent) response.setHeader(requestIdHeader, id);
  return id;
}

/** The name of the header with the ID of a request. */
export const requestIdHeader = 'x-request-id';
