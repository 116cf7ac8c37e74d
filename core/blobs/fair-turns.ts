import { setImmediate as nextTurn } from 'node:timers/promises';

/** As long as anybody else may be kept waiting. A turn costs some 50 µs, so more of them would show. */
const heldMs = 2;

/** Turns of the event loop for others, where work that never has to wait would keep it to itself. For one process's work of a kind. */
export class FairTurns {
  #sinceMs = 0;

  /** Resolves at once, or in the next turn of the event loop if the last that was given is too long ago. */
  async pass(): Promise<void> {
    if (performance.now() - this.#sinceMs < heldMs) return;
    await nextTurn();
    this.#sinceMs = performance.now();
  }
}
