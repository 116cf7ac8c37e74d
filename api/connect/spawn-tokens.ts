/** Spawn tokens: finds, creates and revokes them. Each use reads the store, so that a revoked token is rejected at once. */
import type { IncomingMessage } from 'node:http';
import type { EarliestSpawnRequest } from '../../contract/v1.ts';
import type { Store } from '../../core/store/store.ts';
import { hashToken } from '../../model/access-token.ts';
import { ApiError } from '../../model/api-error.ts';
import { covers, permissionIn } from '../../model/permissions.ts';
import { findService, isOfDeleted, serviceId } from '../../model/service.ts';
import { looksLikeSpawnToken, newSpawnToken, spawnTokenDocument, spawnTokens } from '../../model/spawn-token.ts';
import type { SpawnToken } from '../../model/spawn-token.ts';
import { ownService } from '../access.ts';
import type { Caller } from '../access.ts';
import type { Api } from '../dependencies.ts';
import { failedCheck } from '../failed-checks.ts';

/** A token of a deleted service does not exist, even if there is another service with its name. Throws `SpawnTokenNotFound`. The message does not repeat the token. */
export async function findSpawnToken(store: Store, token: string): Promise<SpawnToken> {
  const found = await readSpawnToken(store, token);
  const service = found && (await findService(store, serviceId(found.account, found.service)));
  if (!found || (service && isOfDeleted(service, found))) throw notFound();
  return found;
}

/** Returns the account of a spawn token, with no scope. Throws `SpawnTokenNotFound` and `TooManyRequests`. */
export async function authenticateSpawnToken(api: Api, request: IncomingMessage, token: string): Promise<Caller> {
  const found = await readSpawnToken(api.store, token);
  if (!found) throw await failedCheck(api, request, notFound());
  const { account } = found;
  return {
    access: 'spawn-token',
    permissions: { token: '', kind: 'access', account, isAdmin: false, accounts: [] },
  };
}

/** Creates a spawn token for a service. Returns the token, which is stored nowhere. */
export async function createSpawnToken(
  api: Api,
  service: { readonly account: string; readonly name: string },
  options: EarliestSpawnRequest,
): Promise<string> {
  const token = newSpawnToken();
  const about = { account: service.account, service: service.name, options };
  await api.store.insert(
    spawnTokens,
    spawnTokenDocument(token, about, { now: await api.store.now(), box: api.spawnOptions }),
  );
  return token;
}

/** Revokes a spawn token of a service that the caller may manage. Throws `SpawnTokenNotFound`, and `Forbidden`. */
export async function revokeSpawnToken(store: Store, caller: Caller, token: string): Promise<void> {
  const { id, account, service } = await findSpawnToken(store, token);
  const permission = permissionIn(caller.permissions, account);
  if (!permission || !covers(permission, service)) throw notFound();
  ownService(caller, { account, service });
  if (!(await store.delete(spawnTokens, id))) throw notFound();
}

async function readSpawnToken(store: Store, token: string): Promise<SpawnToken | undefined> {
  return looksLikeSpawnToken(token) ? await store.get(spawnTokens, hashToken(token)) : undefined;
}

function notFound(): ApiError {
  return new ApiError('SpawnTokenNotFound', 'There is no such spawn token, it may have been revoked');
}
