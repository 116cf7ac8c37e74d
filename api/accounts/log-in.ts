/** Log-ins with a password: limited across processes, and the same for users that do not exist. */
import type { IncomingMessage } from 'node:http';
import { scopes } from '../../contract/scopes.ts';
import {
  accessTokenDocument,
  accessTokens,
  hashToken,
  newSecret,
  parseToken,
  revoke,
} from '../../model/access-token.ts';
import type { AccessToken } from '../../model/access-token.ts';
import { addAdministrator } from '../../model/administrators.ts';
import { ApiError } from '../../model/api-error.ts';
import type { Permissions } from '../../model/permissions.ts';
import { noUser, userId, users, withPassword } from '../../model/user.ts';
import type { User } from '../../model/user.ts';
import type { Api } from '../dependencies.ts';
import { deviceCookie } from './known-device.ts';
import { limitedForUser } from './log-in-limits.ts';
import { newSessionCookie, sessionCookie } from './session-cookie.ts';

/** Two weeks: a person who works daily logs in twice a month. */
const sessionSeconds = 14 * 24 * 60 * 60;

export interface Session {
  readonly user: User;
  readonly token: AccessToken;
  readonly permissions: Permissions;
  /** The headers that set the cookies of the browser. */
  readonly cookies: readonly string[];
}

/** Returns the user if the password is right. Throws `Unauthorized`, and `TooManyRequests` before it checks the password. */
export async function checkPassword(
  api: Api,
  request: IncomingMessage,
  given: { readonly email: string; readonly password: string },
): Promise<User> {
  const id = userId(given.email);
  return await limitedForUser(api, request, id, async () => {
    const user = await api.store.get(users, id);
    const isRight = await api.passwords.matches(given.password, user?.passwordHash);
    if (user && isRight && !user.disabledAt) return user;
    throw new ApiError('Unauthorized', 'The e-mail address or the password is wrong');
  });
}

/**
 * Begins a session with a new secret, and ends the previous session of the browser. Throws `Unauthorized` if the user's password was
 * changed after it was checked.
 */
export async function beginSession(api: Api, request: IncomingMessage, user: User): Promise<Session> {
  await endSession(api, request);
  const now = await api.store.now();
  const secret = newSecret('session');
  const expiresAt = new Date(now.getTime() + sessionSeconds * 1000);
  const name = (request.headers['user-agent'] ?? 'browser').slice(0, 100);
  const { id, passwordSetAt } = user;
  const details = {
    kind: 'session',
    user: id,
    name,
    scopes,
    expiresAt,
    ...(passwordSetAt && { passwordSetAt }),
  } as const;
  const token = accessTokenDocument(secret, details, now);
  await api.store.insert(accessTokens, token);
  const permissions = await api.tokens.permissionsOf(token.id);
  if (!permissions) throw new ApiError('Unauthorized', 'The password has just been changed, log in again');
  const cookies = [newSessionCookie(secret, sessionSeconds), deviceCookie(api, request, id)];
  return { user, token, permissions, cookies };
}

/** Ends the session of a browser, if it has one. */
export async function endSession(api: Api, request: IncomingMessage): Promise<void> {
  const sent = parseToken(sessionCookie(request) ?? '');
  if (sent) await revokeToken(api, hashToken(sent.secret));
}

/** Revokes a token, if it exists: within a second, no process accepts it. */
export async function revokeToken(api: Api, id: string): Promise<void> {
  const now = await api.store.now();
  if (await api.store.update(accessTokens, id, (token) => revoke(token, now))) await api.tokens.publishChange(id);
}

/** Sets the password of a user, which ends the user's log-ins. `check` throws if the current user must not be changed. */
export async function setPassword(
  api: Api,
  id: string,
  newPassword: string,
  check: (user: User, now: Date) => void,
): Promise<User> {
  const now = await api.store.now();
  const before = await api.store.get(users, id);
  if (before) check(before, now);
  const hash = await api.passwords.hash(newPassword);
  const user = await api.store.update(users, id, (current) => {
    check(current, now);
    return withPassword(current, hash, now);
  });
  if (!user) throw noUser(id);
  await addAdministrator(api.store, user);
  await api.tokens.publishChange();
  return user;
}
