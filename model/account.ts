import type { Collection } from '../core/store/store.ts';

/** Owns services. Its name is its ID. */
export interface Account {
  readonly id: string;
  readonly createdAt: Date;
  /** How many bytes it may store in the registry, if not as many as every account; 0 stands for no limit. */
  readonly maxStoredBytes?: number;
}

export const accounts: Collection<Account, 'byCreation'> = {
  name: 'accounts',
  indexes: { byCreation: ['createdAt'] },
};

/** Lets an account store as much, or without a figure as much as every account may. */
export function withMaxStored({ id, createdAt }: Account, maxStoredBytes: number | undefined): Account {
  return { id, createdAt, ...(maxStoredBytes !== undefined && { maxStoredBytes }) };
}
