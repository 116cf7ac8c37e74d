/** Log-ins with a password: limited across processes, and the same for users that do not exist. */
import type { IncomingMessage } from 'node:http';
import { scopes } from '../../contract/scopes.ts';
import { clientAddress, networkOf } from '../../core/http/client-address.ts';
import { hashPassword, isPassword } from '../../core/secret/password-hash.ts';
import {
  accessTokenDocument,
  accessTokens,
  hashToken,
  newSecret,
  parseToken,
  revoke,
} from '../../model/access-token.ts';
import type { AccessToken } from '../../model/access-token.ts';
import { ApiError } from '../../model/api-error.ts';
import { countAttempt, uncountAttempt } from '../../model/attempts.ts';
import type { AttemptLimit } from '../../model/attempts.ts';
import { userId, users, withPassword } from '../../model/user.ts';
import type { User } from '../../model/user.ts';
import type { Api } from '../dependencies.ts';
import { sessionCookie } from './session-cookie.ts';

/** A person who mistypes a password a few times is not kept waiting; 60 guesses an hour find no password of 12 characters. */
const perUserAndNetwork: AttemptLimit = { capacity: 10, seconds: 600 };

/** An office behind one address. */
const perNetwork: AttemptLimit = { capacity: 50, seconds: 600 };

/** Guesses from many networks. Whoever makes them can keep the user out, which ends with the guesses. */
const perUser: AttemptLimit = { capacity: 100, seconds: 3600 };

/** Two weeks: a person who works daily logs in twice a month. */
const sessionSeconds = 14 * 24 * 60 * 60;

/** Longer texts are no user; these characters are enough to distinguish any two that are. */
const maxKeyLength = 254;

export interface Session {
  readonly user: User;
  /** For the cookie. */
  readonly secret: string;
  readonly token: AccessToken;
  readonly lifeSeconds: number;
}

/** Whether a password is that of a user. Throws `Unauthorized`, and `TooManyRequests` before the password is looked at. */
export async function checkPassword(
  api: Api,
  request: IncomingMessage,
  given: { readonly email: string; readonly password: string },
): Promise<User> {
  const id = userId(given.email);
  return await limited(api, request, id, async () => {
    const user = await api.store.get(users, id);
    const isRight = await isPassword(given.password, user?.passwordHash);
    if (user && isRight && !user.disabledAt) return user;
    throw new ApiError('Unauthorized', 'The e-mail address or the password is wrong');
  });
}

/**
 * Runs the check of a secret that people type. The attempt counts before the check, so that requests at the same time cannot have
 * more, and is returned if the check succeeds. Throws `TooManyRequests`, and what the check throws.
 */
export async function limited<Result>(
  api: Api,
  request: IncomingMessage,
  subject: string,
  check: () => Promise<Result>,
): Promise<Result> {
  const network = networkOf(clientAddress(request, api.behindLoadBalancer));
  const key = subject.slice(0, maxKeyLength);
  const buckets = [
    [`log-in ${network} ${key}`, perUserAndNetwork],
    [`log-in from ${network}`, perNetwork],
    [`log-in of ${key}`, perUser],
  ] as const;
  const now = await api.store.now();
  for (const [id, limit] of buckets) {
    const retryAfterSeconds = await countAttempt(api.store, id, limit, now);
    if (retryAfterSeconds > 0) {
      throw new ApiError('TooManyRequests', `Too many log-ins have failed, wait ${retryAfterSeconds} s`, {
        retryAfterSeconds,
      });
    }
  }
  const result = await check();
  for (const [id, limit] of buckets) await uncountAttempt(api.store, id, limit, now);
  return result;
}

/** Begins a session with a secret of its own, and ends the one that the browser had. */
export async function beginSession(api: Api, request: IncomingMessage, user: User): Promise<Session> {
  await endSession(api, request);
  const now = await api.store.now();
  const secret = newSecret('session');
  const expiresAt = new Date(now.getTime() + sessionSeconds * 1000);
  const name = (request.headers['user-agent'] ?? 'browser').slice(0, 100);
  const token = accessTokenDocument(secret, { kind: 'session', user: user.id, name, scopes, expiresAt }, now);
  await api.store.insert(accessTokens, token);
  return { user, secret, token, lifeSeconds: sessionSeconds };
}

/** Ends the session of a browser, if it has one. */
export async function endSession(api: Api, request: IncomingMessage): Promise<void> {
  const sent = parseToken(sessionCookie(request) ?? '');
  if (!sent) return;
  const id = hashToken(sent.secret);
  const now = await api.store.now();
  if (await api.store.update(accessTokens, id, (token) => revoke(token, now))) await api.tokens.publishChange(id);
}

/** Sets the password of a user, who is then logged in nowhere. `check` is applied to the user as it is now, and throws. */
export async function setPassword(
  api: Api,
  id: string,
  newPassword: string,
  check: (user: User, now: Date) => void,
): Promise<User> {
  const now = await api.store.now();
  const before = await api.store.get(users, id);
  if (before) check(before, now);
  const hash = await hashPassword(newPassword);
  const user = await api.store.update(users, id, (current) => {
    check(current, now);
    return withPassword(current, hash, now);
  });
  if (!user) throw new ApiError('UserNotFound', `There is no user "${id}"`);
  await api.tokens.publishChange();
  return user;
}
