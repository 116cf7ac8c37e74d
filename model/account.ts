import type { Role } from '../contract/roles.ts';
import type { Collection } from '../core/store/store.ts';
import { ApiError } from './api-error.ts';

/** A user in an account. */
export interface Member {
  /** The ID of the user. */
  readonly user: string;
  readonly role: Role;
  readonly addedAt: Date;
}

export interface AccountLimits {
  readonly connectsPerSecond?: number;
  readonly runningBackends?: number;
}

/** Owns services. Its name is its ID. */
export interface Account {
  readonly id: string;
  readonly createdAt: Date;
  /** How many bytes it may store in the registry. Absent: the default limit. 0: no limit. */
  readonly maxStoredBytes?: number;
  /** An absent limit is the default limit. 0: no limit. */
  readonly limits?: AccountLimits;
  /** Absent: none. */
  readonly members?: readonly Member[];
}

export const accounts: Collection<Account, 'byCreation'> = {
  name: 'accounts',
  indexes: { byCreation: ['createdAt'] },
};

/** Members are part of the account's document, which is read for every token. More members need several accounts. */
const maxMembers = 1000;

/** Sets the storage limit of an account; `undefined` restores the default limit. */
export function withMaxStored(
  { maxStoredBytes: _before, ...account }: Account,
  maxStoredBytes: number | undefined,
): Account {
  return { ...account, ...(maxStoredBytes !== undefined && { maxStoredBytes }) };
}

/** Sets limits of an account: `undefined` leaves a limit as it is, and null restores the default limit. */
export function withLimits(
  account: Account,
  changes: { readonly [K in keyof AccountLimits]: number | null | undefined },
): Account {
  const limits = Object.entries({ ...account.limits, ...defined(changes) }).filter(([, limit]) => limit !== null);
  return { ...account, limits: Object.fromEntries(limits) };
}

function defined(changes: object): object {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}

/** The role of a user in an account. */
export function roleIn(account: Account, user: string): Role | undefined {
  return account.members?.find((member) => member.user === user)?.role;
}

/** Adds a user, or changes the role. Throws `LastOwner`, and `BadRequest` when the account is full. */
export function withMember(account: Account, user: string, role: Role, now: Date): Account {
  const { members = [] } = account;
  const known = members.find((member) => member.user === user);
  if (known?.role === role) return account;
  if (!known && members.length >= maxMembers) {
    throw new ApiError('BadRequest', `Account "${account.id}" has the maximum of ${maxMembers} members`);
  }
  const member = { user, role, addedAt: known?.addedAt ?? now };
  const changed = known ? members.map((each) => (each === known ? member : each)) : [...members, member];
  return keepOwner(account, { ...account, members: changed });
}

/** Removes a user. Throws `LastOwner`, and `UserNotFound` if the user is not a member. */
export function withoutMember(account: Account, user: string): Account {
  const { members = [] } = account;
  const left = members.filter((member) => member.user !== user);
  if (left.length === members.length) {
    throw new ApiError('UserNotFound', `Account "${account.id}" has no member "${user}"`);
  }
  return keepOwner(account, { ...account, members: left });
}

/** An account that has an owner keeps one: otherwise only an administrator could change its members. */
function keepOwner(before: Account, after: Account): Account {
  const hasOwner = ({ members = [] }: Account) => members.some(({ role }) => role === 'owner');
  if (hasOwner(before) && !hasOwner(after)) {
    throw new ApiError('LastOwner', `Account "${before.id}" needs an owner, make another member owner first`);
  }
  return after;
}

export function noAccount(account: string): ApiError {
  return new ApiError('AccountNotFound', `There is no account "${account}"`);
}
