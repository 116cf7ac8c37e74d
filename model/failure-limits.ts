/**
 * Failed checks of tokens, limited across processes. Only failures are written to the store, and none once a bucket is empty, so that
 * requests with valid tokens cost no write, and a flood of invalid ones hardly any.
 */
import { RecentReads } from '../core/async/recent-reads.ts';
import type { Store } from '../core/store/store.ts';
import { attemptBuckets, countAttempt, waitSeconds } from './attempts.ts';
import type { AttemptBucket, CountedAttempt } from './attempts.ts';

/** How late a process sees the failures in other processes. It sees its own at once. */
const rememberMs = 1_000;

/** About 200 bytes each. */
const maxRemembered = 20_000;

export class FailureLimits {
  readonly #store: Store;
  readonly #buckets = new RecentReads<AttemptBucket | undefined>({ forMs: rememberMs, max: maxRemembered });

  constructor(store: Store) {
    this.#store = store;
  }

  /** How many seconds to wait until each of the buckets allows another failure: 0 if they do now. */
  async secondsToWait(failures: readonly CountedAttempt[]): Promise<number> {
    const now = await this.#store.now();
    const waits = failures.map(async ({ id, limit }) => {
      const bucket = await this.#buckets.get(id, async () => await this.#store.get(attemptBuckets, id));
      return waitSeconds(bucket, limit, now);
    });
    return Math.max(0, ...(await Promise.all(waits)));
  }

  /** Counts a failed check in each bucket. Returns how many seconds to wait if a bucket is empty, else 0. */
  async count(failures: readonly CountedAttempt[]): Promise<number> {
    const known = await this.secondsToWait(failures);
    if (known > 0) return known;
    const now = await this.#store.now();
    const waits = failures.map(async (failure) => {
      const counted = await countAttempt(this.#store, failure, now);
      this.#buckets.set(failure.id, counted.bucket);
      return counted.waitSeconds;
    });
    return Math.max(0, ...(await Promise.all(waits)));
  }
}
