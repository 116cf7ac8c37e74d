import { newLruCache } from '../async/lru-cache.ts';
import type { Clock } from '../clock/clock.ts';

/** About 100 bytes each. An attacker with more addresses than this is not stopped by rate limits. */
const maxBuckets = 20_000;

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/**
 * Rate limits: a bucket of tokens for each key, full at first and refilled over time, in the bounded memory of this process. The
 * least recently used buckets are dropped, and are full again by then.
 */
export class TokenBuckets {
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #perSecond: number;
  readonly #buckets = newLruCache<Bucket>(maxBuckets);

  constructor(clock: Clock, size: { readonly capacity: number; readonly perSecond: number }) {
    this.#clock = clock;
    this.#capacity = size.capacity;
    this.#perSecond = size.perSecond;
  }

  /** How many seconds until there is a token: 0 if there is one now. */
  secondsUntilNext(key: string): number {
    return Math.max(0, (1 - this.#now(key).tokens) / this.#perSecond);
  }

  /** Takes a token, if there is one. */
  take(key: string): boolean {
    const { tokens, atMs } = this.#now(key);
    if (tokens < 1) return false;
    this.#buckets.set(key, { tokens: tokens - 1, atMs });
    return true;
  }

  #now(key: string): Bucket {
    const atMs = this.#clock.now().getTime();
    const bucket = this.#buckets.get(key);
    if (!bucket) return { tokens: this.#capacity, atMs };
    const grown = ((atMs - bucket.atMs) / 1000) * this.#perSecond;
    if (grown >= 0) return { tokens: Math.min(this.#capacity, bucket.tokens + grown), atMs };
    // The clock was set back: the bucket is refilled from now on.
    const restarted = { tokens: bucket.tokens, atMs };
    this.#buckets.set(key, restarted);
    return restarted;
  }
}
