/** What accounts store and may store, for whoever runs the platform. */
import { z } from 'zod';
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Store } from '../../core/store/store.ts';
import { accounts, withMaxStored } from '../../model/account.ts';
import type { Account } from '../../model/account.ts';
import { quotaOf } from './quota-limits.ts';
import type { RegistryLimits } from '../context.ts';
import { openUploadIds, storedBytes, uploadedBytes } from './usage.ts';

const count = z.int().nonnegative();

/** What is told of an account, as a line of JSON when it was asked for by command. */
export const quotaEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('quota'),
    account: z.string(),
    /** What its repositories have, the same bytes once, and what its open uploads hold. */
    stored_bytes: count,
    /** 0 stands for no limit. */
    max_bytes: count,
    /** Whether it has this figure to itself, or the one that all accounts have. */
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

/** Measures anew whenever it is asked: that is seldom. */
export class AccountQuotas {
  readonly #deps: AccountQuotasDeps;

  constructor(deps: AccountQuotasDeps) {
    this.#deps = deps;
  }

  /** All accounts, the oldest first. Throws the signal's reason when it aborts. */
  async *list(signal: AbortSignal): AsyncGenerator<QuotaEvent, void, undefined> {
    for await (const account of this.#deps.store.scan(accounts, { index: 'byCreation' })) {
      signal.throwIfAborted();
      yield await this.#describe(account.id, account);
    }
  }

  /** One account. */
  async *show(id: string): AsyncGenerator<QuotaEvent, void, undefined> {
    const account = await this.#deps.store.get(accounts, id);
    yield await this.#describe(id, account);
  }

  /**
   * Lets an account store so many bytes: 0 for no limit, `undefined` for as many as every account may. Processes that take
   * pushes know it within a few seconds; what is stored already stays. Throws `RangeError` for what is no number of bytes.
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
