/** Shows and sets how much accounts may store, for operators. */
import { z } from 'zod';
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Store } from '../../core/store/store.ts';
import { accounts, withMaxStored } from '../../model/account.ts';
import type { Account } from '../../model/account.ts';
import { quotaOf } from './quota-limits.ts';
import type { RegistryLimits } from '../context.ts';
import { openUploadIds, storedBytes, uploadedBytes } from './usage.ts';

const count = z.int().nonnegative();

/** The quota of an account, which `berth quota --json` prints as a line. */
export const quotaEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('quota'),
    account: z.string(),
    /** The bytes in its repositories, each blob counted once, and in its open uploads. */
    stored_bytes: count,
    /** 0 means no limit. */
    max_bytes: count,
    /** Whether the account has its own limit, or the default one. */
    is_own: z.boolean(),
  }),
  z.object({ type: z.literal('unknown-account'), account: z.string() }),
]);

export type QuotaEvent = z.infer<typeof quotaEvent>;

export interface AccountQuotasDeps {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly limits: Pick<RegistryLimits, 'accountBytes'>;
}

/** Measures on every call: calls are rare. */
export class AccountQuotas {
  readonly #deps: AccountQuotasDeps;

  constructor(deps: AccountQuotasDeps) {
    this.#deps = deps;
  }

  /** Lists all accounts, oldest first. Throws the signal's reason when it aborts. */
  async *list(signal: AbortSignal): AsyncGenerator<QuotaEvent, void, undefined> {
    for await (const account of this.#deps.store.scan(accounts, { index: 'byCreation' })) {
      signal.throwIfAborted();
      yield await this.#describe(account.id, account);
    }
  }

  /** Shows one account. */
  async *show(id: string): AsyncGenerator<QuotaEvent, void, undefined> {
    const account = await this.#deps.store.get(accounts, id);
    yield await this.#describe(id, account);
  }

  /**
   * Sets how many bytes an account may store: 0 for no limit, `undefined` for the default limit. Takes effect within seconds in all
   * processes; stored content stays. Throws `RangeError` if `maxBytes` is not a number of bytes.
   */
  async *set(id: string, maxBytes: number | undefined): AsyncGenerator<QuotaEvent, void, undefined> {
    if (maxBytes !== undefined && !(Number.isSafeInteger(maxBytes) && maxBytes >= 0)) {
      throw new RangeError(`Not a number of bytes: ${maxBytes}`);
    }
    const account = await this.#deps.store.update(accounts, id, (current) => withMaxStored(current, maxBytes));
    yield await this.#describe(id, account);
  }

  async #describe(id: string, account: Account | undefined): Promise<QuotaEvent> {
    if (!account) return { type: 'unknown-account', account: id };
    const { store, blobs, limits } = this.#deps;
    const uploaded = await uploadedBytes(blobs, await openUploadIds(store, id));
    const { maxBytes, isOwn } = quotaOf(account, limits.accountBytes);
    return {
      type: 'quota',
      account: id,
      stored_bytes: (await storedBytes(store, id)) + uploaded,
      max_bytes: maxBytes,
      is_own: isOwn,
    };
  }
}
