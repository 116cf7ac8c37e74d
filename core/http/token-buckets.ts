import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock/clock.ts';

/** Some 100 bytes each. Whoever comes from more places than this at a time is not slowed down by counting. */
const maxBuckets = 20_000;

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/**
 * Rate limits: a bucket of tokens for each key, full at first, which fills up again with time. It lives in this process and
 * in a bounded memory: a bucket that nobody has asked for in a long time is forgotten, and full by then.
 */
export class TokenBuckets {
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #perSecond: number;
  readonly #buckets = new LRUCache<string, Bucket>({ max: maxBuckets });

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
    // The clock was set back: from here on it fills up again, not only when the clock is where it was.
    const restarted = { tokens: bucket.tokens, atMs };
    this.#buckets.set(key, restarted);
    return restarted;
  }
}
