import { setImmediate as nextTurn } from 'node:timers/promises';

/** Requests wait no longer than this for a long loop. Each yield costs about 50 µs. */
const maxBusyMs = 10;

/** Lets other work run during a long loop whose steps may all complete without waiting for the event loop. */
export class Yielder {
  #sinceMs = performance.now();

  /** Yields to the event loop if the loop has run for 10 ms. Await it in each round. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.#sinceMs < maxBusyMs) return;
    await nextTurn();
    this.#sinceMs = performance.now();
  }
}
