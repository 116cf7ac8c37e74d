/**
 * Lets no two runs under one key overlap. They would when Redis was away for longer than a lock lasts, or came back empty:
 * then the same job is handed out once more while it still runs here.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<Result>(key: string, run: () => Promise<Result>): Promise<Result> {
    const last = this.#last.get(key);
    // Without a turn to wait for, the run begins at once: whatever is awaited lets BullMQ's next fetch go first.
    const mine = last === undefined ? run() : last.then(run, run);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
