import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** A complete answer. */
export interface WholeAnswer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
}

interface RawRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** How much of the rest of a body is read: as much as a fast connection has in flight. Most clients have stopped by then. */
const maxRestBytes = 8 * 1024 * 1024;

/** How long the rest of a body is read: several round trips around the world. */
const maxRestMs = 5_000;

/**
 * A body up to this length is received before the answer is sent: if the answer comes too early, some clients (containerd 1) report
 * that they could not write the body, instead of the answer. Manifests are shorter than this.
 */
const shortBytes = 64 * 1024;

/** The maximum wait for a short body. Clients send it at once; for a client that waits for the answer, this is short. */
const shortMs = 250;

/**
 * Answers a request whose body may not have arrived yet. The client can read the whole answer at once. The rest of the body is read
 * and dropped, within limits: closing a connection with unread bytes resets it, and the client could lose the answer. The
 * connection stays open if the body ends within the limits. Resolves when the answer has ended; never rejects.
 */
export async function answerEarly(
  { request, response }: RawRequest,
  { status, headers, body }: WholeAnswer,
  signal: AbortSignal,
): Promise<void> {
  if (bodyBytes(request) <= shortBytes) await drained(request, { maxBytes: shortBytes, maxMs: shortMs, signal });
  const isRead = request.complete || bodyBytes(request) === 0;
  // Clients that see this header stop sending.
  if (!isRead && bodyBytes(request) > maxRestBytes) response.setHeader('connection', 'close');
  response.writeHead(status, { 'content-length': body.length, ...headers });
  if (isRead) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  response.write(body);
  const isDrained = await drained(request, { maxBytes: maxRestBytes, maxMs: maxRestMs, signal });
  response.end(() => {
    if (!isDrained) request.socket.destroySoon();
  });
}

/**
 * Ends an answer whose head and body are written, although the body of its request has not arrived. The rest is read and dropped, as
 * `answerEarly` does. Never rejects.
 */
export async function endEarly({ request, response }: RawRequest): Promise<void> {
  const bounds = { maxBytes: maxRestBytes, maxMs: maxRestMs };
  if (!response.shouldKeepAlive) {
    // Node closes the connection with the end of its last answer.
    await drained(request, bounds);
    response.end();
    return;
  }
  response.end();
  if (!(await drained(request, bounds))) request.socket.destroySoon();
}

/** The announced length of a request body; `Infinity` if it is not announced. */
export function bodyBytes({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
}

interface Bounds {
  readonly maxBytes: number;
  readonly maxMs: number;
  readonly signal?: AbortSignal;
}

/** Reads and drops the body within the limits. Returns whether the body ended. */
async function drained(request: IncomingMessage, { maxBytes, maxMs, signal }: Bounds): Promise<boolean> {
  if (request.complete || request.destroyed || signal?.aborted) return request.complete;
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) resolve();
  };
  const onEnd = () => resolve();
  const timer = setTimeout(onEnd, maxMs);
  signal?.addEventListener('abort', onEnd);
  request.on('data', onData).on('end', onEnd).on('close', onEnd);
  // The previous reader may have paused it or piped it.
  request.unpipe().resume();
  await promise;
  clearTimeout(timer);
  signal?.removeEventListener('abort', onEnd);
  request.off('data', onData).off('end', onEnd).off('close', onEnd).pause();
  return request.complete;
}
