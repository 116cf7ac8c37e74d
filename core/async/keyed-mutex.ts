/** Runs tasks of one key one after another, in the order in which they were added, and tasks of different keys side by side. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs a task after those that were added under the same key before, however they end. Without any, begins at once. */
  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const last = this.#last.get(key);
    const mine = last === undefined ? task() : last.then(task, task);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
