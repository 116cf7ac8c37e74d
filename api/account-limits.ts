/** Limits per account: connects per second, and running backends. Each process counts separately, and recounts the backends. */
import { LRUCache } from 'lru-cache';
import { RecentReads } from '../core/async/recent-reads.ts';
import type { Clock } from '../core/clock/clock.ts';
import { TokenBuckets } from '../core/http/token-buckets.ts';
import type { Store } from '../core/store/store.ts';
import { accounts } from '../model/account.ts';
import type { AccountLimits } from '../model/account.ts';
import { ApiError } from '../model/api-error.ts';
import { backends } from '../model/backend.ts';

/** A process sees changed limits, ended backends, and backends that other processes spawned, at most this late. */
const rememberMs = 1_000;

/** Backends end when they become idle, so capacity is back within minutes at best. */
const retryAfterFullSeconds = 10;

/** About 100 bytes each. */
const maxRemembered = 10_000;

/** Running backends: counted in the store, plus those that this process has spawned since. */
interface Running {
  count: number;
  /** The keys of those that this process has spawned. Of concurrent connects to one key, only one spawns a backend. */
  readonly keys: Set<string>;
}

interface LimitDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** For accounts without their own limits. 0: no limit. */
  readonly defaultLimits: Required<AccountLimits>;
}

export class AccountLimiter {
  readonly #deps: LimitDeps;
  readonly #limits = new RecentReads<Required<AccountLimits>>({ forMs: rememberMs, max: maxRemembered });
  readonly #running = new RecentReads<Running>({ forMs: rememberMs, max: maxRemembered });
  /** By rate. Each account has its own bucket among those of its rate. */
  readonly #buckets = new LRUCache<number, TokenBuckets>({ max: 100 });

  constructor(deps: LimitDeps) {
    this.#deps = deps;
  }

  /** The limits of an account. 0: no limit. */
  limitsOf(account: string): Promise<Required<AccountLimits>> {
    return this.#limits.get(account, async () => {
      const own = (await this.#deps.store.get(accounts, account))?.limits;
      return { ...this.#deps.defaultLimits, ...own };
    });
  }

  /** Forgets the limits of an account after a change. */
  forget(account: string): void {
    this.#limits.forget(account);
  }

  /** Counts a connect. Throws `TooManyRequests`. */
  async admitConnect(account: string): Promise<void> {
    const { connectsPerSecond } = await this.limitsOf(account);
    if (connectsPerSecond === 0) return;
    const buckets = this.#bucketsFor(connectsPerSecond);
    if (buckets.take(account)) return;
    throw new ApiError(
      'TooManyRequests',
      `Account "${account}" may connect ${connectsPerSecond} times a second, try again in a moment`,
      { retryAfterSeconds: Math.max(1, Math.ceil(buckets.secondsUntilNext(account))) },
    );
  }

  /** Counts a backend that is about to be spawned, at most once for a key. Throws `TooManyBackends`. */
  async admitBackend(account: string, key?: string): Promise<void> {
    const { runningBackends } = await this.limitsOf(account);
    if (runningBackends === 0) return;
    const running = await this.#running.get(account, async () => {
      const live = { index: 'byAccount', equals: { account, live: true }, limit: runningBackends } as const;
      return { count: (await this.#deps.store.findIds(backends, live)).length, keys: new Set() };
    });
    if (key !== undefined && running.keys.has(key)) return;
    if (running.count >= runningBackends) {
      throw new ApiError(
        'TooManyBackends',
        `Account "${account}" has reached its limit of ${runningBackends} running backends, stop one first`,
        { retryAfterSeconds: retryAfterFullSeconds },
      );
    }
    running.count += 1;
    if (key !== undefined) running.keys.add(key);
  }

  #bucketsFor(perSecond: number): TokenBuckets {
    const known = this.#buckets.get(perSecond);
    if (known) return known;
    // All connects of a second may arrive at once.
    const buckets = new TokenBuckets(this.#deps.clock, { capacity: perSecond, perSecond });
    this.#buckets.set(perSecond, buckets);
    return buckets;
  }
}
