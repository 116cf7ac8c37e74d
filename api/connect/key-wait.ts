import type { Clock } from '../../core/clock/clock.ts';
import { claimMs, renewEveryMs } from '../../model/key.ts';
import type { Key } from '../../model/key.ts';
import { ApiError } from '../../model/api-error.ts';
import { SeenUnchanged } from '../seen-unchanged.ts';

/** The backend of a claimed key is usually inserted a few milliseconds later. */
const firstClaimPauseMs = 5;

/** The process of a claim that takes longer has probably died, so frequent reads would find nothing. */
const maxClaimPauseMs = 250;

/** Enough for two consecutive claims that end without a backend, and less than the timeout of many clients (30 s). */
const maxClaimWaitMs = 2 * claimMs + 2_000;

/** Between two reads of a key with an expired lease. Short enough for a user who waits for the answer. */
const lapsePauseMs = 500;

/** A live holder renews within its period, even after a freeze and if its first attempt fails. */
const readsOfLostKey = (renewEveryMs + 5_000) / lapsePauseMs;

/** The pauses of one connect request between its reads of a key. They throw the signal's reason when it aborts. */
export class KeyWait {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #seen = new SeenUnchanged();
  #claimPauseMs = firstClaimPauseMs;
  #claimLeftMs = maxClaimWaitMs;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /**
   * Waits before the next read of a key that another request is claiming. The pauses grow, because no message announces the end of
   * a claim, and are bounded in total: then it throws `ApiError` with `Unavailable`.
   */
  async forClaim({ claimUntil }: Key, now: Date): Promise<void> {
    if (this.#claimLeftMs <= 0) {
      throw new ApiError('Unavailable', 'Other requests keep claiming the key, try again in a moment');
    }
    const untilEndMs = Math.max(claimUntil.getTime() - now.getTime(), firstClaimPauseMs);
    const pauseMs = Math.min(this.#claimPauseMs, untilEndMs, this.#claimLeftMs);
    this.#claimLeftMs -= pauseMs;
    this.#claimPauseMs = Math.min(2 * this.#claimPauseMs, maxClaimPauseMs);
    await this.#clock.sleep(pauseMs, this.#signal);
  }

  /**
   * Whether the holder of a key with an expired lease is lost: it did not renew while this process watched for as long as a renewal
   * takes. If not, waits before the next read. The holder may be alive, because it or this process may have been frozen, or the
   * store's clock set. Reads are counted at equal intervals, so a message must not cause one.
   */
  async isLost({ id, leaseUntil }: Key): Promise<boolean> {
    this.#seen.countRead([{ id, state: leaseUntil.getTime() }]);
    if (this.#seen.unchangedReads(id) > readsOfLostKey) return true;
    await this.#clock.sleep(lapsePauseMs, this.#signal);
    return false;
  }
}
