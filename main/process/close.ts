/** Closes several parts of a process, even if some of them fail to close. */

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
export function failuresIn(error: unknown): unknown[] {
  if (error instanceof SuppressedError) return [...failuresIn(error.suppressed), ...failuresIn(error.error)];
  if (error instanceof AggregateError) return error.errors.flatMap(failuresIn);
  return [error];
}
