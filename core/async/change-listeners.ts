import type { Clock } from '../clock/clock.ts';
import { abortable } from './abortable.ts';

/** Listens for changes of one thing. Disposing stops that. */
export interface ChangeListener extends Disposable {
  /**
   * Resolves when there was a change since the last call, which may be at once, and at the latest after `limitMs`. Rejects with the
   * signal's reason when it aborts.
   */
  next(limitMs: number, signal: AbortSignal): Promise<void>;
}

/**
 * Waiting for changes that are announced, but perhaps not all of them: a waiter looks at the truth when it is woken, and every so
 * often all the same. It begins to listen before it looks, so that it misses nothing in between.
 */
export class ChangeListeners {
  readonly #clock: Clock;
  readonly #wakersOf = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes all that listen for changes of this thing. */
  notify(id: string): void {
    for (const wake of this.#wakersOf.get(id) ?? []) wake();
  }

  listen(id: string): ChangeListener {
    let changed = Promise.withResolvers<void>();
    const wake = () => changed.resolve();
    const wakers = this.#wakersOf.get(id) ?? new Set();
    this.#wakersOf.set(id, wakers.add(wake));
    return {
      next: async (limitMs, signal) => {
        using _limit = this.#clock.after(limitMs, wake);
        await abortable(changed.promise, signal);
        changed = Promise.withResolvers();
      },
      [Symbol.dispose]: () => {
        wakers.delete(wake);
        if (wakers.size === 0 && this.#wakersOf.get(id) === wakers) this.#wakersOf.delete(id);
      },
    };
  }
}
