/** JSON bodies, in and out. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import type { RequestHandler } from 'express';

/** Larger bodies are refused: no request of the API comes near. */
const maxBodyBytes = 1024 * 1024;

/** Deeper JSON is refused: nobody nests so deep, and what walks it later recurses. */
const maxDepth = 100;

/**
 * Answers with JSON and exactly `Content-Type: application/json`: existing clients compare it as a text, so Express's own
 * `json()`, which adds a charset, will not do.
 */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}

/** Reads a JSON body into `request.body`. Fails with an error that has `status` and `type`, as body-parser's. */
export function jsonBody(): RequestHandler {
  return express.json({ limit: maxBodyBytes, verify: (_request, _response, bytes) => inspect(bytes) });
}

/** Whether a request has a body in another type than JSON. */
export function hasForeignBody(request: IncomingMessage): boolean {
  const empty =
    request.headers['transfer-encoding'] === undefined && (request.headers['content-length'] ?? '0') === '0';
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  return !empty && type !== 'application/json';
}

/** A body that JSON's grammar may take and we do not. */
export class BodyError extends Error {
  override readonly name = 'BodyError';
  readonly status = 400;
  readonly type = 'entity.refused';
}

function inspect(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw new BodyError('The body is not UTF-8; is it cut in the middle of a character?');
  if (depthOf(bytes) > maxDepth) throw new BodyError(`The body is nested deeper than ${maxDepth} levels`);
}

/** How deep the brackets of a JSON text nest, strings left out. */
function depthOf(bytes: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (inString) {
      if (byte === 0x5c) i += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, (depth += 1));
    else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
  return deepest;
}
