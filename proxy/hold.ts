/** Holding requests until their backend is ready. Every hold ends: ready, gone, too late, given up, or the store fails. */
import { ChangeListeners } from '../core/async/change-listeners.ts';
import type { Clock } from '../core/clock/clock.ts';
import { ProxyFailure, goneFailure } from './failure.ts';
import type { Address, Lookup } from './lookup.ts';

/** The bus may lose a message: then a hold notices a second later. Holds of one backend share the read. */
export const holdPollMs = 1_000;

/** Requests that wait for their backend. */
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
   * Waits until a backend can be reached, as long as it may take from its creation to `ready`.
   *
   * @returns its address. Throws `gone`, `not-ready` or `unavailable`, or the signal's reason.
   */
  async untilReachable(backend: string, createdAt: Date, signal: AbortSignal): Promise<Address> {
    const now = this.#clock.now().getTime();
    // The creation has another machine's time: whatever that says, nobody waits longer than the whole start may take.
    const deadlineMs = Math.min(createdAt.getTime(), now) + this.#startTimeoutMs;
    using change = this.#changes.listen(backend);
    for (;;) {
      signal.throwIfAborted();
      const found = await this.#lookup.refresh(backend);
      if (found.state === 'reachable') return found.address;
      if (found.state === 'gone') throw goneFailure(found.wasReady);
      const leftMs = deadlineMs - this.#clock.now().getTime();
      if (leftMs <= 0) throw new ProxyFailure('not-ready');
      await change.next(Math.min(leftMs, holdPollMs), signal);
    }
  }

  /** Something changed about a backend: whoever waits for it looks again. */
  wake(backend: string): void {
    this.#changes.notify(backend);
  }
}
