/** Checks basic credentials: an account and one of its access tokens, in every form in which existing tools send them. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { accessTokens, hashToken, isUsable, looksLikeAccessToken } from '../../model/access-token.ts';
import type { AccessToken } from '../../model/access-token.ts';
import { accounts } from '../../model/account.ts';
import type { RegistryContext } from '../context.ts';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** What a login claims. Without an account, the login is for the account of the token. */
interface Claim {
  readonly account?: string;
  readonly token: string;
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
): Promise<AccessToken | undefined> {
  const failed = context.rates.beginLogin(request, login.user);
  const token = await checkLogin(context, login);
  if (!token) failed();
  return token;
}

/**
 * The access token of a login, or `undefined` if the login is wrong. Every login costs the same, valid or not: one hash and two
 * reads.
 */
export async function checkLogin(
  { store, clock }: { store: Store; clock: Clock },
  login: Login,
): Promise<AccessToken | undefined> {
  const claim = claimOf(login);
  const token = await store.get(accessTokens, hashToken(claim.token));
  const account = await store.get(accounts, token?.account ?? '');
  if (!token || !account) return undefined;
  if (claim.account !== undefined && claim.account !== token.account) return undefined;
  return isUsable(token, clock.now()) ? token : undefined;
}

function claimOf({ user, password }: Login): Claim {
  const colonAt = password.indexOf(':');
  if (colonAt >= 0) return { account: password.slice(0, colonAt), token: password.slice(colonAt + 1) };
  // Tools that split a token at its first dot find no dot in ours and send all of it as the user. If the user writes the token as
  // `<account>.<token>`, it arrives as an ordinary login.
  if (looksLikeAccessToken(user)) return { token: user };
  return { account: user, token: password };
}
