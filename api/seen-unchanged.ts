/**
 * Counts in how many consecutive reads of this process a document was unchanged. Use it to detect that another process has stopped
 * writing. Unlike a clock, the count does not grow while this process is frozen, or when the clock is set.
 */
export class SeenUnchanged {
  #seen: ReadonlyMap<string, { readonly state: number; readonly reads: number }> = new Map();

  /** Counts one read of these documents, and forgets all others. */
  countRead(documents: Iterable<{ readonly id: string; readonly state: number }>): void {
    this.#seen = new Map(
      Array.from(documents, ({ id, state }) => {
        const before = this.#seen.get(id);
        return [id, { state, reads: before?.state === state ? before.reads + 1 : 1 }];
      }),
    );
  }

  /** How many consecutive reads, including the last one, returned the document in its present state. */
  unchangedReads(id: string): number {
    return this.#seen.get(id)?.reads ?? 0;
  }

  /** Starts again from zero. */
  reset(): void {
    this.#seen = new Map();
  }
}
