import type { Clock } from '../clock/clock.ts';
import { abortable } from './abortable.ts';

/** Listens for changes of one ID until it is disposed. */
export interface ChangeListener extends Disposable {
  /**
   * Resolves after a change since the last call, or after `limitMs`. Rejects with the signal's reason when it aborts.
   */
  next(limitMs: number, signal: AbortSignal): Promise<void>;
}

/**
 * Notifies waiters of changes. Notifications may be lost, so a waiter also reads the store periodically. It starts to listen before
 * it reads, so that it misses no change in between.
 */
export class ChangeListeners {
  readonly #clock: Clock;
  readonly #listeners = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes all listeners of an ID. */
  notify(id: string): void {
    for (const wake of this.#listeners.get(id) ?? []) wake();
  }

  listen(id: string): ChangeListener {
    let changed = Promise.withResolvers<void>();
    const wake = () => changed.resolve();
    const wakers = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, wakers.add(wake));
    return {
      next: async (limitMs, signal) => {
        using _limit = this.#clock.after(limitMs, wake);
        await abortable(changed.promise, signal);
        changed = Promise.withResolvers();
      },
      [Symbol.dispose]: () => {
        wakers.delete(wake);
        if (wakers.size === 0 && this.#listeners.get(id) === wakers) this.#listeners.delete(id);
      },
    };
  }
}
