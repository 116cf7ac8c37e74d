/** Authenticates callers, and limits them to what their tokens allow without revealing what else there is. */
import type { IncomingMessage } from 'node:http';
import type { EndpointAccess } from '../contract/endpoint.ts';
import type { Store } from '../core/store/store.ts';
import { hashToken, parseToken } from '../model/access-token.ts';
import { accounts } from '../model/account.ts';
import { ApiError } from '../model/api-error.ts';
import { backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { covers, permissionIn } from '../model/permissions.ts';
import type { AccountPermission, Permissions } from '../model/permissions.ts';
import { findService, serviceId } from '../model/service.ts';
import type { Service } from '../model/service.ts';
import type { Api } from './dependencies.ts';

/** The caller of an endpoint, with a valid token. */
export interface Caller {
  /** What the endpoint asks for. */
  readonly access: EndpointAccess;
  readonly permissions: Permissions;
}

/** Of an endpoint that needs no token. */
export const anonymous: Caller = {
  access: 'none',
  permissions: { token: '', kind: 'access', isAdmin: false, accounts: [] },
};

/**
 * The caller of a request. Throws `Unauthorized` when the token is missing or not valid now, and `Forbidden` when it allows the
 * endpoint in no account. Whether it does in the account of the request, the functions below check. `account` is the one in the path.
 */
export async function authenticate(
  api: Pick<Api, 'store' | 'tokens'>,
  request: IncomingMessage,
  access: Exclude<EndpointAccess, 'none' | 'spawn-token'>,
  account?: string,
): Promise<Caller> {
  const text = bearerToken(request.headers.authorization);
  if (text === undefined)
    throw new ApiError('Unauthorized', 'Send your access token as "Authorization: Bearer <token>"');
  const sent = parseToken(text);
  const permissions = sent && (await api.tokens.permissionsOf(hashToken(sent.secret)));
  // A session is valid in its cookie only, which other sites cannot send along.
  const isBearer = permissions !== undefined && permissions.kind !== 'session';
  if (!isBearer || (sent?.account !== undefined && sent.account !== permissions.account)) {
    throw new ApiError('Unauthorized', 'This access token is unknown, expired or revoked');
  }
  const caller = { access, permissions };
  if (!mayAnywhere(caller)) throw lacksAccess(access);
  await assertAccountOfAdmin(api, permissions, account);
  return caller;
}

interface ServicePath {
  readonly account: string;
  readonly service: string;
}

/**
 * Returns what the caller may do in an account as a whole. Throws `AccountNotFound` for an account that the token is not valid for, and
 * `Forbidden` when it does not allow the endpoint there, or only for some services.
 */
export function ownAccount(caller: Caller, account: string): AccountPermission {
  const permission = allowedIn(caller, account);
  if (!permission) throw new ApiError('AccountNotFound', `There is no account "${account}"`);
  if (permission.services) {
    throw new ApiError('Forbidden', 'This access token is limited to some services, use one for the whole account');
  }
  return permission;
}

/** Throws `ServiceNotFound` for a service that the token is not valid for, and `Forbidden` when it does not allow the endpoint. */
export function ownService(caller: Caller, path: ServicePath): void {
  const permission = allowedIn(caller, path.account);
  if (!permission || !covers(permission, path.service)) throw noService(path);
}

/** Reads a service that the token is valid for. Throws as `ownService`. */
export async function visibleService(store: Store, caller: Caller, path: ServicePath): Promise<Service> {
  ownService(caller, path);
  const service = await findService(store, serviceId(path.account, path.service));
  if (!service) throw noService(path);
  return service;
}

/** Reads a backend of a service that the token is valid for. Throws `BackendNotFound`, and `Forbidden`. */
export async function visibleBackend(store: Store, caller: Caller, id: string): Promise<Backend> {
  const backend = await anyBackend(store, id);
  const permission = permissionIn(caller.permissions, backend.account);
  if (!permission || !covers(permission, backend.service)) throw noBackend(id);
  allowedIn(caller, backend.account);
  return backend;
}

/** Reads a backend for any caller: knowing its ID is enough to read its status. Throws `BackendNotFound`. */
export async function anyBackend(store: Store, id: string): Promise<Backend> {
  const backend = await store.get(backends, id);
  if (!backend) throw noBackend(id);
  return backend;
}

/** What a caller may do in an account. `undefined` if the token is not valid there. Throws `Forbidden` if it does not allow the endpoint. */
function allowedIn(caller: Caller, account: string): AccountPermission | undefined {
  const permission = permissionIn(caller.permissions, account);
  if (permission && !allows(caller, permission)) throw lacksAccess(caller.access);
  return permission;
}

function mayAnywhere(caller: Caller): boolean {
  const { access, permissions } = caller;
  if (access === 'any' || permissions.isAdmin) return true;
  return permissions.accounts.some((permission) => allows(caller, permission));
}

function allows({ access, permissions }: Caller, { scopes, role }: AccountPermission): boolean {
  if (access === 'none' || access === 'spawn-token' || access === 'any') return true;
  if (access === 'admin') return permissions.isAdmin;
  if (access === 'owner') return role === 'owner' && scopes.includes('manage');
  return scopes.includes(access);
}

function lacksAccess(access: EndpointAccess): ApiError {
  if (access === 'admin') return new ApiError('Forbidden', 'Only an administrator who has logged in may do this');
  if (access === 'owner') {
    return new ApiError(
      'Forbidden',
      'Only an owner of the account may do this, and the token needs the scope "manage"',
    );
  }
  return new ApiError('Forbidden', `This access token lacks the scope "${access}"`);
}

/** An administrator may enter every account, so that one that does not exist must be looked up. */
async function assertAccountOfAdmin(
  { store }: Pick<Api, 'store'>,
  { isAdmin, accounts: own }: Permissions,
  account: string | undefined,
): Promise<void> {
  if (!isAdmin || account === undefined || own.some((permission) => permission.account === account)) return;
  if (!(await store.get(accounts, account))) throw new ApiError('AccountNotFound', `There is no account "${account}"`);
}

function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? '')?.[1];
}

function noService(path: ServicePath): ApiError {
  return new ApiError('ServiceNotFound', `There is no service "${path.account}/${path.service}"`);
}

function noBackend(id: string): ApiError {
  return new ApiError('BackendNotFound', `There is no backend "${id}"`);
}
