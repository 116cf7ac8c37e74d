/** Access tokens of accounts: create, list, revoke. */
import { endpoints } from '../../contract/endpoints.ts';
import type { CreateTokenRequest, TokenObject } from '../../contract/tokens.ts';
import {
  accessTokenDocument,
  accessTokens,
  assertMayIssue,
  idsFrom,
  newSecret,
  publicTokenId,
  tokenText,
} from '../../model/access-token.ts';
import type { AccessToken } from '../../model/access-token.ts';
import type { AccountPermission } from '../../model/permissions.ts';
import { ApiError } from '../../model/api-error.ts';
import { ownAccount } from '../access.ts';
import type { Caller } from '../access.ts';
import { answer } from '../app.ts';
import { findPage } from '../pages.ts';
import type { Api } from '../dependencies.ts';
import { revokeToken } from './log-in.ts';

export const tokenEndpoints = [
  answer(endpoints.createToken, async (api, { parameters, body, caller }) => {
    const permission = ownAccount(caller, parameters.account);
    const { token, document } = await createToken(api, caller, permission, body);
    return { token, ...presentToken(document) };
  }),
  answer(endpoints.listTokens, async (api, { parameters, query, caller }) => {
    const { account, role } = ownAccount(caller, parameters.account);
    const { user } = caller.permissions;
    const ofAccount =
      role === 'owner'
        ? ({ index: 'byAccount', equals: { account } } as const)
        : ({ index: 'byAccountAndUser', equals: { account, user: user ?? '' } } as const);
    const list = { collection: accessTokens, query: { ...ofAccount, order: 'descending' }, by: 'createdAt' } as const;
    const { items, next } = await findPage(api.store, { ...list, type: 'time' }, query);
    return { tokens: items.map(presentToken), ...next };
  }),
  answer(endpoints.revokeToken, async (api, { parameters, caller }) => {
    const permission = ownAccount(caller, parameters.account);
    const { id } = await tokenOf(api, caller, permission, parameters.token_id);
    await revokeToken(api, id);
  }),
];

async function createToken(
  api: Api,
  { permissions }: Caller,
  permission: AccountPermission,
  wanted: CreateTokenRequest,
): Promise<{ token: string; document: AccessToken }> {
  const now = await api.store.now();
  const { expires_in_seconds: seconds } = wanted;
  const expiresAt = seconds === undefined ? undefined : new Date(now.getTime() + seconds * 1000);
  assertMayIssue({ ...permissions, scopes: permission.scopes }, { scopes: wanted.scopes, expiresAt });
  const secret = newSecret('access');
  const { account } = permission;
  const document = accessTokenDocument(
    secret,
    {
      account,
      ...(permissions.user !== undefined && { user: permissions.user }),
      name: wanted.name,
      scopes: [...new Set(wanted.scopes)],
      ...(wanted.services && { services: [...new Set(wanted.services)] }),
      ...(expiresAt && { expiresAt }),
    },
    now,
  );
  await api.store.insert(accessTokens, document);
  return { token: tokenText(secret, account), document };
}

/** A token of an account that the caller may revoke. Throws `TokenNotFound`. */
async function tokenOf(
  api: Api,
  { permissions }: Caller,
  { account, role }: AccountPermission,
  publicId: string,
): Promise<AccessToken> {
  const range = idsFrom(publicId);
  const ofAccount = { index: 'byIdInAccount', equals: { account }, limit: 1 } as const;
  const [token] = range ? await api.store.find(accessTokens, { ...ofAccount, range }) : [];
  const isVisible = role === 'owner' || (token?.user !== undefined && token.user === permissions.user);
  if (!token || !isVisible) throw new ApiError('TokenNotFound', `There is no access token "${publicId}"`);
  return token;
}

function presentToken(token: AccessToken): TokenObject {
  return {
    id: publicTokenId(token),
    name: token.name,
    hint: token.hint,
    kind: token.kind === 'deploy' ? 'deploy' : 'access',
    scopes: [...token.scopes],
    services: token.services ? [...token.services] : null,
    user_email: token.user ?? null,
    created_at: token.createdAt.toISOString(),
    expires_at: token.expiresAt?.toISOString() ?? null,
    revoked_at: token.revokedAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
  };
}
