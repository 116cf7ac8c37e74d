/** Members of accounts, where both the account and the user change. */
import type { Role } from '../contract/roles.ts';
import type { Store } from '../core/store/store.ts';
import { accounts, noAccount, withMember } from './account.ts';
import { ApiError } from './api-error.ts';
import { userId, users, withAccount } from './user.ts';

/**
 * Adds a user to an account, or changes the role. The user's document is written first: after a crash between the two writes it
 * names an account that the user is not a member of, which has no effect. Throws `UserNotFound`, `AccountNotFound` and `LastOwner`.
 */
export async function setMember(store: Store, account: string, email: string, role: Role): Promise<void> {
  const id = userId(email);
  const now = await store.now();
  const user = await store.update(users, id, (current) => withAccount(current, account));
  if (!user) throw new ApiError('UserNotFound', `There is no user "${email}", an administrator can create it`);
  const changed = await store.update(accounts, account, (current) => withMember(current, id, role, now));
  if (!changed) throw noAccount(account);
}
