/** Authenticates callers, and limits them to their own account without revealing what other accounts have. */
import type { IncomingMessage } from 'node:http';
import type { EndpointAccess } from '../contract/endpoint.ts';
import type { Store } from '../core/store/store.ts';
import { accessTokens, hashToken, isUsable, looksLikeAccessToken } from '../model/access-token.ts';
import type { AccessToken } from '../model/access-token.ts';
import { backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { ApiError } from '../model/api-error.ts';
import { serviceId, services } from '../model/service.ts';
import type { Service } from '../model/service.ts';

/** The account and scopes of a valid access token. */
export type Caller = Pick<AccessToken, 'account' | 'scopes'>;

/**
 * Returns the caller of a request. Throws `Unauthorized` if the access token is missing or invalid, `Forbidden` if it lacks the
 * scope. Each request reads the token from the store, so that a revoked token is rejected at once.
 */
export async function authenticate(
  { store }: { store: Store },
  request: IncomingMessage,
  access: Exclude<EndpointAccess, 'none' | 'spawn-token'>,
): Promise<Caller> {
  const token = /^bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined)
    throw new ApiError('Unauthorized', 'Send your access token as "Authorization: Bearer <token>"');
  const found = looksLikeAccessToken(token) ? await store.get(accessTokens, hashToken(token)) : undefined;
  if (!found || !isUsable(found, await store.now())) {
    throw new ApiError('Unauthorized', 'This access token is unknown, expired or revoked');
  }
  if (access !== 'any' && !found.scopes.includes(access))
    throw new ApiError('Forbidden', `This access token lacks the scope "${access}"`);
  return found;
}

interface ServicePath {
  readonly account: string;
  readonly service: string;
}

/** Throws `AccountNotFound` for any account but the caller's. */
export function ownAccount(caller: Caller, account: string): void {
  if (caller.account !== account) throw new ApiError('AccountNotFound', `There is no account "${account}"`);
}

/** Throws `ServiceNotFound` for a service of any account but the caller's. */
export function ownService(caller: Caller, path: ServicePath): void {
  if (caller.account !== path.account) throw noService(path);
}

/** Reads a service of the caller's account. Throws `ServiceNotFound`. */
export async function visibleService(store: Store, caller: Caller, path: ServicePath): Promise<Service> {
  ownService(caller, path);
  const service = await store.get(services, serviceId(path.account, path.service));
  if (!service) throw noService(path);
  return service;
}

/** Reads a backend of the caller's account. Throws `BackendNotFound`. */
export async function visibleBackend(store: Store, caller: Caller, id: string): Promise<Backend> {
  const backend = await anyBackend(store, id);
  if (backend.account !== caller.account) throw noBackend(id);
  return backend;
}

/** Reads a backend for any caller: knowing its ID is enough to read its status. Throws `BackendNotFound`. */
export async function anyBackend(store: Store, id: string): Promise<Backend> {
  const backend = await store.get(backends, id);
  if (!backend) throw noBackend(id);
  return backend;
}

function noService({ account, service }: ServicePath): ApiError {
  return new ApiError('ServiceNotFound', `There is no service "${account}/${service}"`);
}

function noBackend(id: string): ApiError {
  return new ApiError('BackendNotFound', `There is no backend "${id}"`);
}
