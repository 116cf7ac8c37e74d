/** Waits for a promise until the signal aborts, then rejects with the signal's reason. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason as Error);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** A signal that aborts when either of two does, if there are two. */
export function eitherSignal(signal: AbortSignal | undefined, other: AbortSignal): AbortSignal {
  return signal ? AbortSignal.any([signal, other]) : other;
}

/** Iterates a source until the signal aborts, then throws the signal's reason at once, even while the source is silent. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  signal.throwIfAborted();
  const iterator = source[Symbol.asyncIterator]();
  // One listener for all chunks: a race with one promise would keep a reaction for every chunk.
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
    // Not awaited: after an abort, a generator may still wait for its own source.
    iterator.return?.().catch(() => {});
  }
}
