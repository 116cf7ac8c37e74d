import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import type { TerminationKind } from '../../contract/statuses.ts';
import { hardStopBeforeMs, softStopBeforeMs } from '../../model/key.ts';

/** A timer that is this late was delayed by more than a busy process: the process or its machine was frozen. */
const frozenMs = 2_000;

/** Time to renew after that: an attempt that fails because its connection broke, the pause, and an attempt that succeeds. */
const renewalAfterFreezeMs = 4_000;

/** How soon `untilDue` notices that the machine was asleep. */
const checkEveryMs = 1_000;

/**
 * The moments at which backends must be stopped, softly and then hard, because a lease is about to end. If no other process shares
 * the store there are none: only this process, which runs the holder, can assign the key again.
 */
export class LeaseDeadlines implements Disposable {
  readonly #clock: Clock;
  readonly #isFencing: boolean;
  readonly #onDue: (kind: TerminationKind) => void;
  #timers: readonly Disposable[] = [];
  #candidates: readonly Disposable[] = [];

  constructor({ machineClock, store }: { machineClock: Clock; store: Store }, onDue: (kind: TerminationKind) => void) {
    this.#clock = machineClock;
    this.#isFencing = store.isShared;
    this.#onDue = onDue;
  }

  /**
   * Prepares deadlines for a lease that begins now. Must be called before the lease is requested from the store, so that they are
   * never later than the lease that the store grants.
   *
   * @returns a function that replaces the previous deadlines by these; it must be called when the lease was granted
   */
  prepare(leaseLeftMs: number): () => void {
    if (!this.#isFencing) return () => {};
    let isKept = false;
    const at = (beforeMs: number, kind: TerminationKind) =>
      this.#after(Math.max(leaseLeftMs - beforeMs, 0), () => {
        if (isKept) this.#onDue(kind);
      });
    dispose(this.#candidates);
    this.#candidates = [at(softStopBeforeMs, 'soft'), at(hardStopBeforeMs, 'hard')];
    return () => {
      isKept = true;
      dispose(this.#timers);
      this.#timers = this.#candidates;
      this.#candidates = [];
    };
  }

  /** As `Clock.after`. If this process was frozen meanwhile, the holder gets time to renew first. */
  #after(delayMs: number, action: () => void): Disposable {
    const dueMs = this.#clock.now().getTime() + delayMs;
    let timer = this.#clock.after(delayMs, () => {
      const lateMs = this.#clock.now().getTime() - dueMs;
      if (lateMs < frozenMs) action();
      else timer = this.#clock.after(renewalAfterFreezeMs, action);
    });
    return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
  }

  [Symbol.dispose](): void {
    dispose(this.#timers);
    dispose(this.#candidates);
  }
}

/**
 * Waits for `waitMs` by the time of day, which continues while a machine sleeps and its timers stop. Rejects with the signal's reason
 * when it aborts.
 */
export async function untilDue(clock: Clock, waitMs: number, signal: AbortSignal): Promise<void> {
  const dueMs = clock.now().getTime() + waitMs;
  for (let leftMs = waitMs; leftMs > 0 && clock.now().getTime() < dueMs; leftMs -= checkEveryMs) {
    await clock.sleep(Math.min(leftMs, checkEveryMs), signal);
  }
}

function dispose(timers: readonly Disposable[]): void {
  for (const timer of timers) timer[Symbol.dispose]();
}
