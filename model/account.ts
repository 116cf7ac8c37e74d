import type { Collection } from '../core/store/store.ts';

/** Owns services. Its name is its ID. */
export interface Account {
  readonly id: string;
  readonly createdAt: Date;
}

export const accounts: Collection<Account> = { name: 'accounts', indexes: {} };
