/** What a token allows: computed from the current documents of the token, its user and its accounts. */
import type { Role } from '../contract/roles.ts';
import { scopes as allScopes } from '../contract/scopes.ts';
import type { Scope } from '../contract/scopes.ts';
import type { Store } from '../core/store/store.ts';
import { accessTokens, isUsable } from './access-token.ts';
import type { AccessToken, TokenKind } from './access-token.ts';
import { accounts, roleIn } from './account.ts';
import type { Account } from './account.ts';
import { users } from './user.ts';
import type { User } from './user.ts';

/** What a token allows in one account. */
export interface AccountPermission {
  readonly account: string;
  readonly role: Role;
  readonly scopes: readonly Scope[];
  /** The only services, by their names. Absent: all. */
  readonly services?: readonly string[];
}

export interface Permissions {
  /** The ID of the token in the store. */
  readonly token: string;
  readonly kind: TokenKind;
  /** The account that the token belongs to, if it belongs to one. */
  readonly account?: string;
  /** The user that the token acts for. */
  readonly user?: string;
  /** Whether it may do what only administrators may, and everything in every account. */
  readonly isAdmin: boolean;
  readonly accounts: readonly AccountPermission[];
  readonly expiresAt?: Date;
}

/** The most that each role allows. Endpoints that are only for owners check the role itself. */
const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  owner: allScopes,
  member: allScopes,
  viewer: ['read'],
};

/** The documents that decide what a token allows. */
interface TokenContext {
  readonly token: AccessToken;
  /** Absent where the token has none, or the user does not exist. */
  readonly user: User | undefined;
  /** The account of the token, or all accounts that its user may be a member of. */
  readonly accounts: readonly Account[];
}

/** What a token allows now, or `undefined` if it is not valid. */
export function permissionsOf({ token, user, accounts }: TokenContext, now: Date): Permissions | undefined {
  if (!isUsable(token, now)) return undefined;
  const kind = token.kind ?? 'access';
  const isLogin = isLogIn(kind);
  if (token.user !== undefined && (!user || user.disabledAt)) return undefined;
  if (isLogin && !isOpenLogIn(token, user, now)) return undefined;
  const isAdmin = user?.isAdmin === true;
  const permitted = accounts.flatMap((account) => {
    const role = user && !isAdmin ? roleIn(account, user.id) : 'owner';
    // An administrator has access to all accounts, but lists only those with a membership.
    if (role === undefined || (isLogin && isAdmin && roleIn(account, user.id) === undefined)) return [];
    const scopes = token.scopes.filter((scope) => scopesOfRole[role].includes(scope));
    return [{ account: account.id, role, scopes, ...(token.services && { services: token.services }) }];
  });
  if (token.account !== undefined && permitted.length === 0) return undefined;
  return {
    token: token.id,
    kind,
    ...(token.account !== undefined && { account: token.account }),
    ...(token.user !== undefined && { user: token.user }),
    isAdmin: isAdmin && isLogin,
    accounts: permitted,
    ...(token.expiresAt && { expiresAt: token.expiresAt }),
  };
}

/** Whether a token is a log-in, of a browser or a command line: it acts for its user everywhere. */
export function isLogIn(kind: TokenKind): boolean {
  return kind === 'session' || kind === 'cli';
}

/**
 * Whether a log-in may still be used: a new password of its user ends it. The log-in names its password by the time at which it was set,
 * because a log-in that was checked before a change can be written after it.
 */
export function isOpenLogIn(token: AccessToken, user: User | undefined, now: Date): boolean {
  return isUsable(token, now) && token.passwordSetAt?.getTime() === user?.passwordSetAt?.getTime();
}

/** What a token allows in an account, or `undefined` if nothing. An administrator may do everything in every account. */
export function permissionIn(permissions: Permissions, account: string): AccountPermission | undefined {
  const permission = permissions.accounts.find((each) => each.account === account);
  if (permission || !permissions.isAdmin) return permission;
  return { account, role: 'owner', scopes: allScopes };
}

/** Whether a token still allows everything that it allowed before. Its user may have joined other accounts meanwhile. */
export function isStillAllowed(before: Permissions, now: Permissions): boolean {
  if (before.isAdmin && !now.isAdmin) return false;
  return before.accounts.every((permission) => {
    const current = now.accounts.find(({ account }) => account === permission.account);
    return current !== undefined && allowsAsMuch(current, permission);
  });
}

function allowsAsMuch(current: AccountPermission, before: AccountPermission): boolean {
  return (
    (current.role === 'owner' || before.role !== 'owner') &&
    before.scopes.every((scope) => current.scopes.includes(scope)) &&
    (current.services === undefined || before.services?.every((each) => covers(current, each)) === true)
  );
}

/** Whether a permission covers a service. */
export function covers({ services }: AccountPermission, service: string): boolean {
  return services?.includes(service) ?? true;
}

/** Reads what a token allows now, by the token's ID. */
export async function readPermissions(store: Store, id: string, now: Date): Promise<Permissions | undefined> {
  const token = await store.get(accessTokens, id);
  const user = token?.user === undefined ? undefined : await store.get(users, token.user);
  const names = token?.account !== undefined || !user ? [token?.account ?? ''] : user.accounts;
  const found = await Promise.all(names.map(async (name) => await store.get(accounts, name)));
  return token && permissionsOf({ token, user, accounts: found.filter((account) => account !== undefined) }, now);
}
