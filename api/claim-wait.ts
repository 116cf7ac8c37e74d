import type { Clock } from '../core/clock/clock.ts';
import { claimMs } from '../model/key.ts';
import type { Key } from '../model/key.ts';
import { ApiError } from '../model/api-error.ts';

/** The backend of a claimed key is usually written a few milliseconds later. */
const firstPauseMs = 5;

/** A claim that lasts longer than usual most likely lost its process: frequent looks would only cost reads. */
const maxPauseMs = 250;

/** Enough for two claims in a row that end without a backend, and less than clients wait for an answer (30 s, often). */
const maxWaitMs = 2 * claimMs + 2_000;

/**
 * The waiting of one request for keys that other requests are claiming: pauses that grow, and add up to a bounded time. No message
 * announces that a claim is over, so there is nothing to listen to (`core/async/change-listeners.ts`).
 */
export class ClaimWait {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #pauseMs = firstPauseMs;
  #leftMs = maxWaitMs;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /**
   * Waits a little before the next look at a claimed key. Throws `ApiError` with `Unavailable` when the request has waited for
   * long enough, and the signal's reason when it aborts.
   */
  async pause(key: Key, now: Date): Promise<void> {
    if (this.#leftMs <= 0) {
      throw new ApiError('Unavailable', 'The key is being given to a new backend all the time, try again in a moment');
    }
    const untilEndMs = Math.max(key.claimUntil.getTime() - now.getTime(), firstPauseMs);
    const pauseMs = Math.min(this.#pauseMs, untilEndMs, this.#leftMs);
    this.#leftMs -= pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, maxPauseMs);
    await this.#clock.sleep(pauseMs, this.#signal);
  }
}
