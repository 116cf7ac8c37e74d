/**
 * Counts in how many consecutive looks of this process a document was unchanged. Use it to judge another process by what it failed to
 * write. Unlike a clock, the count is not affected by the time for which this process was frozen, or by a change of the clock.
 */
export class SeenUnchanged {
  #seen: ReadonlyMap<string, { readonly state: number; readonly looks: number }> = new Map();

  /** Counts one look at these documents, and forgets all others. */
  look(documents: Iterable<{ readonly id: string; readonly state: number }>): void {
    this.#seen = new Map(
      Array.from(documents, ({ id, state }) => {
        const before = this.#seen.get(id);
        return [id, { state, looks: before?.state === state ? before.looks + 1 : 1 }];
      }),
    );
  }

  /** How many consecutive looks, including the last one, have found the document in its present state. */
  looksAt(id: string): number {
    return this.#seen.get(id)?.looks ?? 0;
  }

  /** Starts again from zero. */
  reset(): void {
    this.#seen = new Map();
  }
}
