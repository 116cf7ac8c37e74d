/** Users: people who log in with a password. What they may do in an account is written in the account. */
import type { Collection } from '../core/store/store.ts';
import { hashToken } from './access-token.ts';
import { ApiError } from './api-error.ts';

export interface User {
  /** The e-mail address, in lower case. */
  readonly id: string;
  /** The hash of the password with its parameters. Absent until the user has set one. */
  readonly passwordHash?: string;
  /** Log-ins with an earlier password have ended. */
  readonly passwordSetAt?: Date;
  /** Whether the user administrates the platform: creates accounts and users, and counts as owner of every account. */
  readonly isAdmin: boolean;
  readonly disabledAt?: Date;
  /**
   * Accounts that the user may be a member of. A name is added before the user becomes a member and is never removed; the document of
   * the account decides whether the user is a member.
   */
  readonly accounts: readonly string[];
  /** The hash of the code with which the user sets a password, and its end. */
  readonly invitation?: { readonly codeHash: string; readonly expiresAt: Date };
  readonly createdAt: Date;
}

export const users: Collection<User, 'byCreation' | 'byAdmin'> = {
  name: 'users',
  indexes: { byCreation: ['createdAt'], byAdmin: ['isAdmin', 'createdAt'] },
};

/** Long enough for a colleague who is on leave, short enough that a forgotten message is of no use. */
const invitationMs = 7 * 24 * 60 * 60 * 1000;

/** The ID of a user, from the e-mail address. */
export function userId(email: string): string {
  return email.toLowerCase();
}

export function newUser(email: string, details: { isAdmin: boolean }, now: Date): User {
  return { id: userId(email), isAdmin: details.isAdmin, accounts: [], createdAt: now };
}

/** Adds an account that the user is about to become a member of. */
export function withAccount(user: User, account: string): User {
  return user.accounts.includes(account) ? user : { ...user, accounts: [...user.accounts, account] };
}

/** Sets a password, by its hash. The invitation becomes invalid, and all earlier log-ins end. */
export function withPassword({ invitation: _used, ...user }: User, passwordHash: string, now: Date): User {
  return { ...user, passwordHash, passwordSetAt: now };
}

/** Invites a user to set a password. The codes of earlier invitations become invalid. */
export function invite(user: User, code: string, now: Date): User {
  return { ...user, invitation: { codeHash: hashToken(code), expiresAt: new Date(now.getTime() + invitationMs) } };
}

/** Whether a code is that of the user's invitation. */
export function isInvited({ invitation, disabledAt }: User, code: string, now: Date): boolean {
  return (
    !disabledAt && invitation !== undefined && invitation.codeHash === hashToken(code) && now < invitation.expiresAt
  );
}

/** Disables or enables a user. */
export function withDisabled({ disabledAt, ...user }: User, isDisabled: boolean, now: Date): User {
  return isDisabled ? { ...user, disabledAt: disabledAt ?? now } : user;
}

export function noUser(id: string): ApiError {
  return new ApiError('UserNotFound', `There is no user "${id}"`);
}
