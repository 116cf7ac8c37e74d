/** Closes all parts of a process, even if some fail to close. */
import type { Log } from '../../core/log/log.ts';

/** Returns a function that closes the stack at its first call only. Logs each failure, and throws all of them at the end. */
export function closingOnce(owned: AsyncDisposableStack, log: Log): () => Promise<void> {
  const close = async () => {
    try {
      await owned.disposeAsync();
    } catch (error) {
      // A set, because a part that is closed twice throws the same error twice.
      const failures = new Set(failuresIn(error));
      for (const failure of failures) log.error({ err: failure }, 'A component did not close');
      throw new AggregateError(failures, 'Not all components closed', { cause: error });
    }
  };
  let closing: Promise<void> | undefined;
  return () => (closing ??= close());
}

/** Closes parts concurrently. If some fail, the others are still closed, and the errors are thrown at the end. */
export function closingTogether(...parts: readonly (AsyncDisposable | undefined)[]): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = await Promise.allSettled(parts.map(async (part) => await part?.[Symbol.asyncDispose]()));
      const failures = closed.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
      if (failures.length > 1) throw new AggregateError(failures, 'Several components did not close');
      if (failures.length === 1) throw failures[0];
    },
  };
}

/** The individual errors in an error of a stack of disposables or of `closingTogether`. */
function failuresIn(error: unknown): unknown[] {
  if (error instanceof SuppressedError) return [...failuresIn(error.suppressed), ...failuresIn(error.error)];
  if (error instanceof AggregateError) return error.errors.flatMap(failuresIn);
  return [error];
}
