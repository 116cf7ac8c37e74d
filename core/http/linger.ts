import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** An answer whose body is at hand. */
export interface WholeAnswer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** So much of the rest of a body is read: as much as is on its way on a fast connection, so that most clients have stopped by then. */
const maxRestBytes = 8 * 1024 * 1024;

/** And for so long: several times the way to a client on the other side of the world and back. */
const maxRestMs = 5_000;

/**
 * A body that is no longer is received before its answer: some clients (containerd 1) report that they could not write it, and not
 * the answer, when that comes too early. Manifests are that short.
 */
const shortBytes = 64 * 1024;

/** A client that has a short body sends it at once. One that waits for the answer is not kept waiting noticeably. */
const shortMs = 250;

/**
 * Answers a request whose body may still be on its way. The client can read the whole answer at once. What it goes on sending
 * is read and dropped, within bounds: closing a connection with unread bytes resets it, and the client could lose the answer.
 * The connection is kept if the body comes to its end. Resolves when the answer has ended; never rejects.
 */
export async function answerEarly(
  { request, response }: Exchange,
  { status, headers, body }: WholeAnswer,
  signal: AbortSignal,
): Promise<void> {
  if (bodyBytes(request) <= shortBytes) await drained(request, { maxBytes: shortBytes, maxMs: shortMs, signal });
  const isRead = request.complete || bodyBytes(request) === 0;
  // A client that hears this stops sending.
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

/** The length of a request body as announced; `Infinity` if it is not. */
export function bodyBytes({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
}

interface Bounds {
  readonly maxBytes: number;
  readonly maxMs: number;
  readonly signal: AbortSignal;
}

/** Reads on for a while. Resolves to whether the body came to its end. */
async function drained(request: IncomingMessage, { maxBytes, maxMs, signal }: Bounds): Promise<boolean> {
  if (request.complete || request.destroyed || signal.aborted) return request.complete;
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) resolve();
  };
  const onEnd = () => resolve();
  const timer = setTimeout(onEnd, maxMs);
  signal.addEventListener('abort', onEnd);
  request.on('data', onData).on('end', onEnd).on('close', onEnd);
  // Its reader has paused it, or what it was piped to.
  request.unpipe().resume();
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', onEnd);
  request.off('data', onData).off('end', onEnd).off('close', onEnd).pause();
  return request.complete;
}
