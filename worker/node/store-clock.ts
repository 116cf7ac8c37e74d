import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import { ownClocks } from '../../core/store/store-time.ts';
import type { LocalClocks } from '../../core/store/store-time.ts';
import type { Store } from '../../core/store/store.ts';

/** Clocks that drift by 500 ppm, which is much, differ by 5 ms after this time. */
const compareEveryMs = 10_000;

interface StoreClockDeps {
  /** Its timers are used, but not its time of day, which can be set at any moment. */
  readonly clock: Clock;
  readonly store: Store;
  readonly log: Log;
  readonly clocks?: Pick<LocalClocks, 'steadyMs'>;
}

/**
 * The store's time with this machine's timers. All nodes date and compare documents by the store's clock, however wrong their own
 * clocks are. If no other process shares the store, the store uses the clock of its process.
 *
 * Between two comparisons, the steady clock of this machine measures the time. It stops while the machine sleeps, so this time can be
 * late until the next comparison, which ends no backend early.
 */
export class StoreClock implements Clock, Disposable {
  readonly #machine: Clock;
  readonly #store: Store;
  readonly #log: Log;
  readonly #clocks: Pick<LocalClocks, 'steadyMs'>;
  readonly #comparing: Disposable;
  /** How far the store's clock is ahead of the steady clock. Nothing is known before the first comparison. */
  #aheadMs = -Infinity;

  private constructor({ clock, store, log, clocks = ownClocks }: StoreClockDeps) {
    this.#machine = clock;
    this.#store = store;
    this.#log = log;
    this.#clocks = clocks;
    this.#comparing = clock.every(compareEveryMs, () => void this.#compareOrWarn());
  }

  /** Compares the two clocks now, and then regularly until disposed. Throws `StoreError` if the store does not answer. */
  static async open(deps: StoreClockDeps): Promise<StoreClock> {
    using opening = new DisposableStack();
    const clock = opening.use(new StoreClock(deps));
    await clock.#compare();
    opening.move();
    return clock;
  }

  now(): Date {
    return new Date(this.#clocks.steadyMs() + this.#aheadMs);
  }

  after(delayMs: number, action: () => void): Disposable {
    return this.#machine.after(delayMs, action);
  }

  every(periodMs: number, action: () => void): Disposable {
    return this.#machine.every(periodMs, action);
  }

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    await this.#machine.sleep(delayMs, signal);
  }

  [Symbol.dispose](): void {
    this.#comparing[Symbol.dispose]();
  }

  async #compare(): Promise<void> {
    const startedMs = this.#clocks.steadyMs();
    const storeNow = await this.#store.now();
    const endedMs = this.#clocks.steadyMs();
    // The store read its clock during the call, so this is the least possible difference, and it may be greater by the duration of the
    // call. A difference in between, from an earlier comparison, may be more exact.
    const leastMs = storeNow.getTime() - endedMs;
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, leastMs), storeNow.getTime() - startedMs);
  }

  async #compareOrWarn(): Promise<void> {
    try {
      await this.#compare();
    } catch (error) {
      this.#log.debug({ err: error }, 'Cannot read the clock of the store');
    }
  }
}
