/** Checks basic credentials: an account and one of its access tokens, in every form in which existing tools send them. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { hashToken, parseToken } from '../../model/access-token.ts';
import { readPermissions } from '../../model/permissions.ts';
import type { AccountPermission, Permissions } from '../../model/permissions.ts';
import type { RegistryContext } from '../context.ts';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** What a login with one token allows in one account. */
export interface LoggedIn extends AccountPermission {
  /** All that the token allows. */
  readonly permissions: Permissions;
}

/** What a login claims. Without an account, the login is for the account of the token. */
interface Claim {
  readonly account?: string;
  readonly secret: string;
}

/** Parses a `Basic` authorization header. `undefined` if it is not one. */
export function parseBasic(authorization: string): Login | undefined {
  const encoded = /^basic +([a-z0-9+/=]+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colonAt = decoded.indexOf(':');
  return colonAt < 0 ? undefined : { user: decoded.slice(0, colonAt), password: decoded.slice(colonAt + 1) };
}

/**
 * As `checkLogin`, for a request. Throws `too-many-failures` before it checks the login if too many have failed, so that an
 * attacker learns nothing more.
 */
export async function logIn(
  context: RegistryContext,
  request: IncomingMessage,
  login: Login,
): Promise<LoggedIn | undefined> {
  await context.rates.admitLogin(request, login.user);
  const found = await checkLogin(context, login);
  if (!found) await context.rates.countFailure(request, login.user);
  return found;
}

/**
 * What a login allows, or `undefined` if the login is wrong. Every login with the token of an account costs the same, valid or not:
 * one hash and two reads.
 */
export async function checkLogin(
  { store, clock }: { store: Store; clock: Clock },
  login: Login,
): Promise<LoggedIn | undefined> {
  const claim = claimOf(login);
  const permissions = await readPermissions(store, hashToken(claim.secret), clock.now());
  if (!permissions || permissions.kind === 'session') return undefined;
  const permission = claimed(permissions, claim.account ?? permissions.account);
  return permission && { ...permission, permissions };
}

/** Administrators, too, push and pull only in accounts of which they are members. */
function claimed({ accounts }: Permissions, account: string | undefined): AccountPermission | undefined {
  return accounts.find((permission) => permission.account === account);
}

function claimOf({ user, password }: Login): Claim {
  const colonAt = password.indexOf(':');
  if (colonAt >= 0) return claimIn(password.slice(0, colonAt), password.slice(colonAt + 1));
  // Some tools send the whole token as the user.
  const alone = parseToken(user);
  return alone ? alone : claimIn(user, password);
}

/** The account in front of a token must be the claimed account. Some tools split a token at its first dot. */
function claimIn(account: string, password: string): Claim {
  const sent = parseToken(password);
  if (!sent) return { account, secret: password };
  const { account: rest, secret } = sent;
  if (rest === undefined || rest === account) return { account, secret };
  return { account: `${account}.${rest}`, secret };
}
