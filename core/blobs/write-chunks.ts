import type { FileHandle } from 'node:fs/promises';
import { fileErrors } from './file-errors.ts';

/**
 * Writes what a source gives to a file, from `offset` on, each chunk as it comes. When the source fails or the signal
 * aborts, it rejects with that reason, and what was written stays.
 */
export async function writeChunks(
  file: FileHandle,
  offset: number,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  let position = offset;
  for await (const chunk of untilAborted(source, signal)) {
    await fileErrors(() => writeWhole(file, chunk, position));
    position += chunk.byteLength;
  }
}

async function writeWhole(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < chunk.byteLength) {
    const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, position + done);
    done += bytesWritten;
  }
}

/** What a source gives, until the signal aborts: then it throws the reason at once, even while the source gives nothing. */
async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  signal.throwIfAborted();
  const iterator = source[Symbol.asyncIterator]();
  // One listener for all chunks, rather than a race with one promise, which would keep a reaction for every chunk.
  let abortNext: (() => void) | undefined;
  const onAbort = () => abortNext?.();
  signal.addEventListener('abort', onAbort);
  try {
    for (;;) {
      const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<T>>();
      abortNext = () => reject(signal.reason as Error);
      iterator.next().then(resolve, reject);
      const result = await promise;
      if (result.done) return;
      yield result.value;
      signal.throwIfAborted();
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Not awaited: after an abort, a generator that still waits for its own source would hold this up.
    iterator.return?.().catch(() => {});
  }
}
