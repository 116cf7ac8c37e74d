import { setImmediate as nextTurn } from 'node:timers/promises';

/** Keeps long work that never has to wait from having the process to itself: all of it may be in memory. */
export class Pace {
  readonly #stepMs: number;
  #sinceMs = performance.now();

  /** @param stepMs - how long others may be kept waiting; a turn for them costs some 50 µs */
  constructor(stepMs: number) {
    this.#stepMs = stepMs;
  }

  /** To be awaited in each round of a loop. */
  async step(): Promise<void> {
    if (performance.now() - this.#sinceMs < this.#stepMs) return;
    await nextTurn();
    this.#sinceMs = performance.now();
  }
}
