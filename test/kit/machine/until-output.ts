/** What a wait needs to know about a running program. */
interface Observed {
  /** Calls the function at the next output. */
  readonly onNext: (call: () => void) => void;
  /** Resolves when the program has ended and its whole output was received. */
  readonly ended: Promise<unknown>;
}

/** Looks for something in the output of a program until it is found. Returns `undefined` if the whole output is without it. */
export async function untilOutput<T>(find: () => T | undefined, { onNext, ended }: Observed): Promise<T | undefined> {
  let isComplete = false;
  const complete = ended.then(() => void (isComplete = true));
  for (;;) {
    const isLast = isComplete;
    const found = find();
    if (found !== undefined || isLast) return found;
    await Promise.race([new Promise<void>(onNext), complete]);
  }
}
