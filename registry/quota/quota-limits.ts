import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { accounts } from '../../model/account.ts';
import type { Account } from '../../model/account.ts';

/** An allowance is two numbers; of accounts beyond this many that push at a time, some are read again sooner. */
const maxAccounts = 10_000;

/** How old one may be: it is read for a push, not for each of its requests, and a change of it shows soon. */
const maxAgeMs = 2_000;

interface QuotaLimitsParts {
  readonly store: Store;
  readonly clock: Clock;
  /** What accounts may store that have no figure of their own; 0 stands for no limit. */
  readonly usualBytes: number;
}

/** How many bytes each account may store. */
export class QuotaLimits {
  readonly #parts: QuotaLimitsParts;
  readonly #read = new LRUCache<string, { readonly bytes: number; readonly readAtMs: number }>({ max: maxAccounts });

  constructor(parts: QuotaLimitsParts) {
    this.#parts = parts;
  }

  /** How many bytes an account may store; `Infinity` where there is no limit. */
  async of(account: string): Promise<number> {
    const { store, clock, usualBytes } = this.#parts;
    const nowMs = clock.now().getTime();
    const known = this.#read.get(account);
    if (known && Math.abs(nowMs - known.readAtMs) < maxAgeMs) return known.bytes;
    const { maxBytes } = quotaOf(await store.get(accounts, account), usualBytes);
    const bytes = maxBytes === 0 ? Infinity : maxBytes;
    this.#read.set(account, { bytes, readAtMs: nowMs });
    return bytes;
  }

  /** As it was read last; 0 where it never was. */
  known(account: string): number {
    return this.#read.get(account)?.bytes ?? 0;
  }
}

/** What an account may store, where 0 stands for no limit, and whether that is a figure of its own. */
export function quotaOf(
  account: Account | undefined,
  usualBytes: number,
): { readonly maxBytes: number; readonly isOwn: boolean } {
  const own = account?.maxStoredBytes;
  return { maxBytes: own ?? usualBytes, isOwn: own !== undefined };
}
