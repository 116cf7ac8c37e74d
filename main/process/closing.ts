/** Closing parts of a process, whatever fails meanwhile. */
import type { Log } from '../../core/log/log.ts';

/** Closes what is open, once. Failures are logged, and thrown at the end. */
export function closingOnce(owned: AsyncDisposableStack, log: Log): () => Promise<void> {
  const close = async () => {
    try {
      await owned.disposeAsync();
    } catch (error) {
      // A part that is closed twice fails twice with the same error.
      const failures = new Set(failuresIn(error));
      for (const failure of failures) log.error({ err: failure }, 'A component did not close');
      throw new AggregateError(failures, 'Not all components closed', { cause: error });
    }
  };
  let closing: Promise<void> | undefined;
  return () => (closing ??= close());
}

/** Closes parts concurrently. If parts fail, the others are closed all the same, and their errors are thrown at the end. */
export function together(...parts: readonly (AsyncDisposable | undefined)[]): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = await Promise.allSettled(parts.map(async (part) => await part?.[Symbol.asyncDispose]()));
      const failures = closed.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
      if (failures.length > 1) throw new AggregateError(failures, 'Several components did not close');
      if (failures.length === 1) throw failures[0];
    },
  };
}

/** The single errors in what a stack of disposables, or `together`, has thrown. */
function failuresIn(error: unknown): unknown[] {
  if (error instanceof SuppressedError) return [...failuresIn(error.suppressed), ...failuresIn(error.error)];
  if (error instanceof AggregateError) return error.errors.flatMap(failuresIn);
  return [error];
}
