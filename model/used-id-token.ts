/** ID tokens that were exchanged for a deploy token. Each can be exchanged once, so that a token that leaks into a log is useless. */
import type { Collection, Store } from '../core/store/store.ts';
import { insertIfAbsent } from '../core/store/upsert.ts';
import { hashToken } from './access-token.ts';

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

/** Records the use of an ID token. Returns whether it is the first use: of two concurrent uses, exactly one is. */
export async function useIdToken(store: Store, { issuer, name, endsAt }: IdTokenUse): Promise<boolean> {
  return await insertIfAbsent(store, usedIdTokens, { id: hashToken(JSON.stringify([issuer, name])), endsAt });
}
