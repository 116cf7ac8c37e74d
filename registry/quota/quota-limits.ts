import { newLruCache } from '../../core/async/lru-cache.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { accounts } from '../../model/account.ts';
import type { Account } from '../../model/account.ts';

/** An entry is two numbers. If more accounts push at a time, some are read more often. */
const maxAccounts = 10_000;

/** Long enough to read the limit once per push instead of once per request, and short enough that a change takes effect soon. */
const maxAgeMs = 2_000;

interface QuotaLimitsParts {
  readonly store: Store;
  readonly clock: Clock;
  /** The limit of accounts without their own; 0 means no limit. */
  readonly defaultBytes: number;
}

/** The storage limit of each account. */
export class QuotaLimits {
  readonly #parts: QuotaLimitsParts;
  readonly #read = newLruCache<{ readonly bytes: number; readonly readAtMs: number }>(maxAccounts);

  constructor(parts: QuotaLimitsParts) {
    this.#parts = parts;
  }

  /** How many bytes an account may store; `Infinity` if there is no limit. */
  async of(account: string): Promise<number> {
    const { store, clock, defaultBytes } = this.#parts;
    const nowMs = clock.now().getTime();
    const known = this.#read.get(account);
    if (known && Math.abs(nowMs - known.readAtMs) < maxAgeMs) return known.bytes;
    const { maxBytes } = quotaOf(await store.get(accounts, account), defaultBytes);
    const bytes = maxBytes === 0 ? Infinity : maxBytes;
    this.#read.set(account, { bytes, readAtMs: nowMs });
    return bytes;
  }

  /** The limit that was last read; 0 if it was never read. */
  known(account: string): number {
    return this.#read.get(account)?.bytes ?? 0;
  }
}

/** How many bytes an account may store (0 means no limit), and whether the account has its own limit. */
export function quotaOf(
  account: Account | undefined,
  defaultBytes: number,
): { readonly maxBytes: number; readonly isOwn: boolean } {
  const own = account?.maxStoredBytes;
  return { maxBytes: own ?? defaultBytes, isOwn: own !== undefined };
}
