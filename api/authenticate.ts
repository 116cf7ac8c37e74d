/** Who is calling, and what they may do. */
import type { IncomingMessage } from 'node:http';
import type { EndpointAccess } from '../contract/endpoint.ts';
import type { Store } from '../core/store/store.ts';
import { accessTokens, hashToken, isUsable, looksLikeAccessToken } from '../model/access-token.ts';
import type { AccessToken } from '../model/access-token.ts';
import { ApiError } from '../model/api-error.ts';

/** The caller behind a valid access token. */
export type Caller = Pick<AccessToken, 'account' | 'scopes'>;

/**
 * The caller of a request. Throws `Unauthorized` when the access token is missing or not valid now, `Forbidden` when it lacks
 * the scope. Every request is looked up in the store, so that a revoked token is refused at once.
 */
export async function authenticate(
  deps: { store: Store },
  request: IncomingMessage,
  access: Exclude<EndpointAccess, 'none'>,
): Promise<Caller> {
  const token = bearerToken(request.headers.authorization);
  if (token === undefined)
    throw new ApiError('Unauthorized', 'Send your access token as "Authorization: Bearer <token>"');
  const found = looksLikeAccessToken(token) ? await deps.store.get(accessTokens, hashToken(token)) : undefined;
  if (!found || !isUsable(found, await deps.store.now())) {
    throw new ApiError('Unauthorized', 'This access token is unknown, expired or revoked');
  }
  if (!found.scopes.includes(access)) throw new ApiError('Forbidden', `This access token lacks the scope "${access}"`);
  return found;
}

function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? '')?.[1];
}
