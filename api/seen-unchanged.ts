/**
 * For how many looks of this process each thing has stood as it is. Where a document must be judged by what another process failed
 * to write, looks count in place of a clock: time in which this process stood still does not count, nor does a step of a clock.
 */
export class SeenUnchanged {
  #seen: ReadonlyMap<string, { readonly state: number; readonly looks: number }> = new Map();

  /** Takes one look. What is not among the things any more is forgotten. */
  look(things: Iterable<{ readonly id: string; readonly state: number }>): void {
    this.#seen = new Map(
      Array.from(things, ({ id, state }) => {
        const before = this.#seen.get(id);
        return [id, { state, looks: before?.state === state ? before.looks + 1 : 1 }];
      }),
    );
  }

  /** How many looks in a row, the last one included, have found a thing as it is. */
  looksAt(id: string): number {
    return this.#seen.get(id)?.looks ?? 0;
  }

  /** Begins anew. */
  forget(): void {
    this.#seen = new Map();
  }
}
