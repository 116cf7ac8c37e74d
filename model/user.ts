/** Users: people who log in with a password. What they may do in an account is written in the account. */
import type { Collection } from '../core/store/store.ts';

export interface User {
  /** The e-mail address, in lower case. */
  readonly id: string;
  /** The hash of the password with its parameters. Absent until the user has set one. */
  readonly passwordHash?: string;
  /** Log-ins from before are over. */
  readonly passwordSetAt?: Date;
  /** Whether the user administrates the platform: creates accounts and users, and counts as owner of every account. */
  readonly isAdmin: boolean;
  readonly disabledAt?: Date;
  /**
   * Accounts that the user may be a member of. A name is added before the user becomes a member and is never removed; whether the
   * user is a member, the account says.
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
