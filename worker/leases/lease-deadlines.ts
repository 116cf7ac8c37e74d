import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import type { TerminationKind } from '../../contract/statuses.ts';
import { hardStopBeforeMs, softStopBeforeMs } from '../../model/key.ts';

/** A timer that is this late was held up by more than a busy process: the process, or its machine, stood still. */
const stoodStillMs = 2_000;

/** Time to renew after that: an attempt that fails since it was cut off, the pause after it, and one that succeeds. */
const renewalAfterFreezeMs = 4_000;

/**
 * The moments at which backends must be stopped, softly and then hard, because a lease is about to end. There are none where no
 * other process shares the store: then a key can only be assigned anew in this process, which also runs its holder.
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
   * Prepares deadlines for a lease that begins now. Called before the store is asked for it, they are never later than the
   * lease that it grants.
   *
   * @returns what makes them count, in place of the ones before; to be called when the lease was granted
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

  /** As `Clock.after`. If this process stood still meanwhile, what holds a lease renews first. */
  #after(delayMs: number, action: () => void): Disposable {
    const dueMs = this.#clock.now().getTime() + delayMs;
    let timer = this.#clock.after(delayMs, () => {
      const lateMs = this.#clock.now().getTime() - dueMs;
      if (lateMs < stoodStillMs) action();
      else timer = this.#clock.after(renewalAfterFreezeMs, action);
    });
    return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
  }

  [Symbol.dispose](): void {
    dispose(this.#timers);
    dispose(this.#candidates);
  }
}

function dispose(timers: readonly Disposable[]): void {
  for (const timer of timers) timer[Symbol.dispose]();
}
