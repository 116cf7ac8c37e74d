import { setImmediate as nextTurn } from 'node:timers/promises';

/** Requests wait no longer than this for a walk through documents, each step of which may be answered from memory. */
const stepMs = 10;

/** Keeps a long walk from having the process to itself. */
export class Pace {
  #sinceMs = performance.now();

  /** To be awaited in each round of a loop. */
  async step(): Promise<void> {
    if (performance.now() - this.#sinceMs < stepMs) return;
    await nextTurn();
    this.#sinceMs = performance.now();
  }
}
