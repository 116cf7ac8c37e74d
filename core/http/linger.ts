import type { IncomingMessage } from 'node:http';

/** A refused client is listened to this long and this far before the connection is cut, so that it reads the answer. */
const lingerBytes = 8 * 1024 * 1024;
const lingerMs = 5_000;

/** Reads on for a while. Resolves to whether the request's body came to its end: then the connection can be kept. */
export async function drained(request: IncomingMessage, signal: AbortSignal): Promise<boolean> {
  if (request.complete || request.destroyed || signal.aborted) return request.complete;
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > lingerBytes) resolve();
  };
  const onEnd = () => resolve();
  const timer = setTimeout(onEnd, lingerMs);
  signal.addEventListener('abort', onEnd);
  request.on('data', onData).on('end', onEnd).on('close', onEnd);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', onEnd);
  request.off('data', onData).off('end', onEnd).off('close', onEnd);
  return request.complete;
}
