import type { Clock } from '../core/clock/clock.ts';
import type { TerminationKind } from '../contract/statuses.ts';
import { hardStopBeforeMs, softStopBeforeMs } from '../model/key.ts';

/** The moments at which backends must be stopped, softly and then hard, because a lease is about to end. */
export class LeaseDeadlines implements Disposable {
  readonly #clock: Clock;
  readonly #onDue: (kind: TerminationKind) => void;
  #timers: readonly Disposable[] = [];
  #candidates: readonly Disposable[] = [];

  constructor(clock: Clock, onDue: (kind: TerminationKind) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /**
   * Prepares deadlines for a lease that begins now. Called before the store is asked for it, they are never later than the
   * lease that it grants.
   *
   * @returns what makes them count, in place of the ones before; to be called when the lease was granted
   */
  prepare(leaseLeftMs: number): () => void {
    let isKept = false;
    const at = (beforeMs: number, kind: TerminationKind) =>
      this.#clock.after(Math.max(leaseLeftMs - beforeMs, 0), () => {
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

  [Symbol.dispose](): void {
    dispose(this.#timers);
    dispose(this.#candidates);
  }
}

function dispose(timers: readonly Disposable[]): void {
  for (const timer of timers) timer[Symbol.dispose]();
}
