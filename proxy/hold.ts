/** Holds requests until their backend is ready. */
import { ChangeListeners } from '../core/async/change-listeners.ts';
import type { Clock } from '../core/clock/clock.ts';
import { ProxyError, goneError } from './errors.ts';
import type { Address, BackendLocation, Lookup } from './lookup.ts';

/** If the bus loses a message, a held request notices the change this much later. All requests to a backend share the read. */
export const holdPollMs = 1_000;

/** A request that is held. */
export interface Hold {
  /** When its backend was created. */
  readonly createdAt: Date;
  /** Ends the hold. */
  readonly signal: AbortSignal;
  /** Called each time the location of the backend was read. */
  readonly onFound: (location: BackendLocation) => void;
}

/** The requests that wait for their backend. */
export class Holds {
  readonly #lookup: Lookup;
  readonly #clock: Clock;
  readonly #startTimeoutMs: number;
  readonly #changes: ChangeListeners;

  constructor(deps: { lookup: Lookup; clock: Clock; startTimeoutMs: number }) {
    this.#lookup = deps.lookup;
    this.#clock = deps.clock;
    this.#startTimeoutMs = deps.startTimeoutMs;
    this.#changes = new ChangeListeners(deps.clock);
  }

  /**
   * Waits until a backend is reachable, as long as it may take from its creation to `ready`, and returns its address. Throws
   * `gone`, `not-ready` or `unavailable`, or the signal's reason.
   */
  async untilReachable(backend: string, { createdAt, signal, onFound }: Hold): Promise<Address> {
    const now = this.#clock.now().getTime();
    // Another machine set the time of creation. If its clock is ahead, the wait is still no longer than a whole start.
    const deadlineMs = Math.min(createdAt.getTime(), now) + this.#startTimeoutMs;
    using change = this.#changes.listen(backend);
    for (;;) {
      signal.throwIfAborted();
      const found = await this.#lookup.refresh(backend);
      onFound(found);
      if (found.state === 'reachable') return found.address;
      if (found.state === 'gone') throw goneError(found.wasReady);
      const leftMs = deadlineMs - this.#clock.now().getTime();
      if (leftMs <= 0) throw new ProxyError('not-ready');
      await change.next(Math.min(leftMs, holdPollMs), signal);
    }
  }

  /** Makes all requests that wait for a backend look at it again. */
  wake(backend: string): void {
    this.#changes.notify(backend);
  }
}
