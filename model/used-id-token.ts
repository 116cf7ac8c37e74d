/** ID tokens that were exchanged for a deploy token: each can be exchanged once, so that one that leaks from a log is of no use. */
import { createHash } from 'node:crypto';
import { StoreError } from '../core/store/store.ts';
import type { Collection, Store } from '../core/store/store.ts';

interface UsedIdToken {
  readonly id: string;
  /** When the ID token would no longer be accepted anyway. */
  readonly endsAt: Date;
}

export const usedIdTokens: Collection<UsedIdToken, 'byEnd'> = {
  name: 'used-id-tokens',
  indexes: { byEnd: ['endsAt'] },
};

/** What identifies an ID token, and how long it is accepted. */
export interface IdTokenUse {
  readonly issuer: string;
  /** Its claim `jti`, or another text that no other ID token of the issuer has. */
  readonly name: string;
  readonly endsAt: Date;
}

/** Notes the use of an ID token. Returns whether this is the first: of two uses at the same time, one is. */
export async function useIdToken(store: Store, { issuer, name, endsAt }: IdTokenUse): Promise<boolean> {
  const id = createHash('sha256')
    .update(JSON.stringify([issuer, name]))
    .digest('hex');
  try {
    await store.insert(usedIdTokens, { id, endsAt });
    return true;
  } catch (error) {
    if (error instanceof StoreError && error.code === 'duplicate') return false;
    throw error;
  }
}
