/** Operations that are under way, for an owner that waits for them when it closes. */
export class OpenOperations {
  readonly #open = new Set<Promise<unknown>>();

  async run<R>(operation: () => Promise<R>): Promise<R> {
    const running = operation();
    this.#open.add(running);
    try {
      return await running;
    } finally {
      this.#open.delete(running);
    }
  }

  /** Resolves when all operations that were started before have settled. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#open);
  }
}
