/** The log-ins of a user: browser sessions and command lines, listed and ended by the user. */
import { endpoints } from '../../contract/endpoints.ts';
import type { LogInObject } from '../../contract/people.ts';
import { accessTokens, idsFrom, publicTokenId } from '../../model/access-token.ts';
import type { AccessToken } from '../../model/access-token.ts';
import { ApiError } from '../../model/api-error.ts';
import { isOpenLogIn } from '../../model/permissions.ts';
import { users } from '../../model/user.ts';
import type { Caller } from '../access.ts';
import { answer } from '../app.ts';
import type { Api } from '../dependencies.ts';
import { findPage } from '../pages.ts';
import { revokeToken } from './log-in.ts';
import { noSessionCookie } from './session-cookie.ts';

export const ownLogInEndpoints = [
  answer(endpoints.listLogIns, async (api, { query, caller }) => {
    const { user, token: own } = callerOf(caller);
    const [now, document] = [await api.store.now(), await api.store.get(users, user)];
    const list = {
      collection: accessTokens,
      query: { ...logInsOf(user), order: 'descending' },
      by: 'createdAt',
      type: 'time',
      includes: (token: AccessToken) => isOpenLogIn(token, document, now),
    } as const;
    const { items, next } = await findPage(api.store, list, query);
    return { log_ins: items.map((token) => presentLogIn(token, own)), ...next };
  }),
  answer(endpoints.logOut, async (api, { parameters, caller, response }) => {
    const { user, token: own } = callerOf(caller);
    const token = await logInOf(api, user, parameters.uuid);
    await revokeToken(api, token.id);
    if (token.id === own && token.kind === 'session') response.setHeader('set-cookie', noSessionCookie);
  }),
  answer(endpoints.logOutOthers, async (api, { caller }) => {
    const { user, token: own } = callerOf(caller);
    for await (const { id } of api.store.scan(accessTokens, logInsOf(user))) {
      if (id !== own) await revokeToken(api, id);
    }
  }),
];

/** Log-ins belong to no account. */
function logInsOf(user: string) {
  return { index: 'byAccountAndUser', equals: { account: null, user } } as const;
}

function callerOf({ permissions: { user = '', token } }: Caller): { readonly user: string; readonly token: string } {
  return { user, token };
}

/** Throws `TokenNotFound`. */
async function logInOf(api: Api, user: string, uuid: string): Promise<AccessToken> {
  const range = idsFrom(uuid);
  const ofUser = { index: 'byIdOfUser', equals: { user }, limit: 1 } as const;
  const [token] = range ? await api.store.find(accessTokens, { ...ofUser, range }) : [];
  if (!token || token.account !== undefined) throw new ApiError('TokenNotFound', `There is no log-in "${uuid}"`);
  return token;
}

function presentLogIn(token: AccessToken, own: string): LogInObject {
  return {
    uuid: publicTokenId(token),
    kind: token.kind === 'session' ? 'browser' : 'command-line',
    program: token.name,
    is_current: token.id === own,
    created_at: token.createdAt.toISOString(),
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    expires_at: token.expiresAt?.toISOString() ?? null,
  };
}
