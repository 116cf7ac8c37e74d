/** Runs tasks of one key one after another, in the order in which they were added, and tasks of different keys concurrently. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs a task after the earlier tasks of its key have settled; at once if there are none. */
  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const last = this.#last.get(key);
    const current = last === undefined ? task() : last.then(task, task);
    this.#last.set(key, current);
    try {
      return await current;
    } finally {
      if (this.#last.get(key) === current) this.#last.delete(key);
    }
  }
}
