/** How a process closes what it has opened: all of it, whatever fails. */

/** What can be closed side by side: all are, though one fails. Then it throws what that one threw. */
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

/** The errors of several parts, one by one, as stacks of disposables and `together` throw them. */
export function failuresIn(error: unknown): unknown[] {
  if (error instanceof SuppressedError) return [...failuresIn(error.suppressed), ...failuresIn(error.error)];
  if (error instanceof AggregateError) return error.errors.flatMap(failuresIn);
  return [error];
}
