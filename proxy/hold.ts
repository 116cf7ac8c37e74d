/** Holding requests until their backend is ready. Every hold ends: ready, gone, too late, given up, or the store fails. */
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
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(deps: { lookup: Lookup; clock: Clock; startTimeoutMs: number }) {
    this.#lookup = deps.lookup;
    this.#clock = deps.clock;
    this.#startTimeoutMs = deps.startTimeoutMs;
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
    for (;;) {
      signal.throwIfAborted();
      // Listens before it reads: what changes in between is not missed.
      using change = this.#listen(backend);
      const found = await this.#lookup.refresh(backend);
      if (found.state === 'reachable') return found.address;
      if (found.state === 'gone') throw goneFailure(found.wasReady);
      const leftMs = deadlineMs - this.#clock.now().getTime();
      if (leftMs <= 0) throw new ProxyFailure('not-ready');
      await this.#either(change.happened, Math.min(leftMs, holdPollMs), signal);
    }
  }

  /** Something changed about a backend: whoever waits for it looks again. */
  wake(backend: string): void {
    for (const look of this.#waiting.get(backend) ?? []) look();
  }

  #listen(backend: string): Disposable & { happened: Promise<void> } {
    const { promise: happened, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(backend) ?? new Set();
    this.#waiting.set(backend, waiting.add(resolve));
    const stop = () => {
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(backend) === waiting) this.#waiting.delete(backend);
    };
    return { happened, [Symbol.dispose]: stop };
  }

  async #either(happened: Promise<void>, limitMs: number, signal: AbortSignal): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    using _limit = this.#clock.after(limitMs, resolve);
    const onAbort = () => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    await Promise.race([happened, over]);
    signal.removeEventListener('abort', onAbort);
  }
}
