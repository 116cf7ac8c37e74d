import type { Role } from '../contract/roles.ts';
import type { Collection } from '../core/store/store.ts';

/** A user in an account. */
export interface Member {
  /** The ID of the user. */
  readonly user: string;
  readonly role: Role;
  readonly addedAt: Date;
}

/** Owns services. Its name is its ID. */
export interface Account {
  readonly id: string;
  readonly createdAt: Date;
  /** How many bytes it may store in the registry, if not as many as every account; 0 stands for no limit. */
  readonly maxStoredBytes?: number;
  /** Absent: none. */
  readonly members?: readonly Member[];
}

export const accounts: Collection<Account, 'byCreation'> = {
  name: 'accounts',
  indexes: { byCreation: ['createdAt'] },
};

/** Sets the storage limit of an account; `undefined` restores the default limit. */
export function withMaxStored(
  { maxStoredBytes: _before, ...account }: Account,
  maxStoredBytes: number | undefined,
): Account {
  return { ...account, ...(maxStoredBytes !== undefined && { maxStoredBytes }) };
}

/** The role of a user in an account. */
export function roleIn(account: Account, user: string): Role | undefined {
  return account.members?.find((member) => member.user === user)?.role;
}
