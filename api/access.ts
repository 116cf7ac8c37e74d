/** Authenticates callers, and limits them to what their tokens allow, without revealing that anything else exists. */
import type { IncomingMessage } from 'node:http';
import { needsToken } from '../contract/endpoint.ts';
import type { EndpointAccess } from '../contract/endpoint.ts';
import type { Store } from '../core/store/store.ts';
import { hashToken, parseToken } from '../model/access-token.ts';
import { accounts, noAccount } from '../model/account.ts';
import { ApiError } from '../model/api-error.ts';
import { backends, noBackend } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { covers, isLogIn, permissionIn } from '../model/permissions.ts';
import type { AccountPermission, Permissions } from '../model/permissions.ts';
import { findService, noService, serviceId } from '../model/service.ts';
import type { Service } from '../model/service.ts';
import { assertOwnPage, sessionCookie } from './accounts/session-cookie.ts';
import type { Api } from './dependencies.ts';
import { failedCheck } from './failed-checks.ts';
import type { FailedChecks } from './failed-checks.ts';

/** The caller of an endpoint, with a valid token. */
export interface Caller {
  /** What the endpoint requires. */
  readonly access: EndpointAccess;
  readonly permissions: Permissions;
}

/** The caller of an endpoint that needs no token. */
export const anonymous: Caller = {
  access: 'none',
  permissions: { token: '', kind: 'access', isAdmin: false, accounts: [] },
};

/**
 * Returns the caller of a request. Throws `Unauthorized` when the token is missing or invalid, `TooManyRequests` when the network has
 * sent too many invalid tokens, and `Forbidden` when the token allows the endpoint in no account. The functions below check whether it
 * allows the endpoint in the account of the request. `account` is the one in the path.
 */
export async function authenticate(
  api: Pick<Api, 'store' | 'tokens' | 'urls'> & FailedChecks,
  request: IncomingMessage,
  access: EndpointAccess,
  account?: string,
): Promise<Caller> {
  const permissions = await permissionsIn(api, request);
  if (!permissions) {
    const invalid = new ApiError('Unauthorized', 'This access token is unknown, expired or revoked');
    throw await failedCheck(api, request, invalid);
  }
  const caller = { access, permissions };
  if (!isAllowedAnywhere(caller)) throw lacksAccess(access);
  await assertAccountOfAdmin(api, permissions, account);
  return caller;
}

/** The user whose session the cookie of a request belongs to, if any. */
export async function sessionUser(api: Pick<Api, 'tokens'>, request: IncomingMessage): Promise<string | undefined> {
  return (await sessionPermissions(api, request))?.user;
}

/**
 * What the session in the cookie of a request allows, if there is one. Also used for requests that a link on another site caused: that
 * site cannot read the page.
 */
export async function sessionPermissions(
  { tokens }: Pick<Api, 'tokens'>,
  request: IncomingMessage,
): Promise<Permissions | undefined> {
  const sent = parseToken(sessionCookie(request) ?? '');
  const permissions = sent && (await tokens.permissionsOf(hashToken(sent.secret)));
  return permissions?.kind === 'session' ? permissions : undefined;
}

export interface ServicePath {
  readonly account: string;
  readonly service: string;
}

/**
 * Returns what the caller may do in an account as a whole. Throws `AccountNotFound` for an account that the token is not valid for, and
 * `Forbidden` when it does not allow the endpoint there, or only for some services.
 */
export function ownAccount(caller: Caller, account: string): AccountPermission {
  const permission = partOfAccount(caller, account);
  if (permission.services) {
    throw new ApiError('Forbidden', 'This access token is limited to some services, use one for the whole account');
  }
  return permission;
}

/**
 * Returns what the caller may do in an account, possibly for some services only: lists then contain only what concerns these. Throws
 * `AccountNotFound` for an account that the token is not valid for, and `Forbidden` when it does not allow the endpoint there.
 */
export function partOfAccount(caller: Caller, account: string): AccountPermission {
  const permission = allowedIn(caller, account);
  if (!permission) throw noAccount(account);
  return permission;
}

/** Throws `ServiceNotFound` for a service that the token is not valid for, and `Forbidden` when it does not allow the endpoint. */
export function ownService(caller: Caller, path: ServicePath): void {
  const permission = allowedIn(caller, path.account);
  if (!permission || !covers(permission, path.service)) throw noService(serviceId(path.account, path.service));
}

/** Reads a service that the token is valid for. Throws as `ownService`. */
export async function visibleService(store: Store, caller: Caller, path: ServicePath): Promise<Service> {
  ownService(caller, path);
  const id = serviceId(path.account, path.service);
  const service = await findService(store, id);
  if (!service) throw noService(id);
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

function isAllowedAnywhere(caller: Caller): boolean {
  const { access, permissions } = caller;
  if (access === 'login') return isLogIn(permissions.kind);
  if (access === 'any' || permissions.isAdmin) return true;
  return permissions.accounts.some((permission) => allows(caller, permission));
}

function allows({ access, permissions }: Caller, { scopes, role }: AccountPermission): boolean {
  if (!needsToken(access) || access === 'any' || access === 'login') return true;
  if (access === 'admin') return permissions.isAdmin;
  if (access === 'owner') return role === 'owner' && scopes.includes('manage');
  return scopes.includes(access);
}

function lacksAccess(access: EndpointAccess): ApiError {
  if (access === 'login') return new ApiError('Forbidden', 'Only a user who has logged in may do this');
  if (access === 'admin') return new ApiError('Forbidden', 'Only an administrator who has logged in may do this');
  if (access === 'owner') {
    return new ApiError(
      'Forbidden',
      'Only an owner of the account may do this, and the token needs the scope "manage"',
    );
  }
  return new ApiError('Forbidden', `This access token lacks the scope "${access}"`);
}

/** What the token of a request allows. A session token is accepted only in its cookie, which other sites cannot send. */
async function permissionsIn(
  { tokens, urls }: Pick<Api, 'tokens' | 'urls'>,
  request: IncomingMessage,
): Promise<Permissions | undefined> {
  const { authorization } = request.headers;
  const cookie = authorization === undefined ? sessionCookie(request) : undefined;
  const text = cookie ?? bearerToken(authorization);
  if (text === undefined) {
    throw new ApiError('Unauthorized', 'Send your access token as "Authorization: Bearer <token>"');
  }
  const sent = parseToken(text);
  const permissions = sent && (await tokens.permissionsOf(hashToken(sent.secret)));
  if (!permissions || (permissions.kind === 'session') !== (cookie !== undefined)) return undefined;
  if (cookie !== undefined) assertOwnPage(request, urls.api);
  return sent?.account === undefined || sent.account === permissions.account ? permissions : undefined;
}

/** Throws `AccountNotFound` if an administrator, who has access to every account, names one that does not exist. */
async function assertAccountOfAdmin(
  { store }: Pick<Api, 'store'>,
  { isAdmin, accounts: own }: Permissions,
  account: string | undefined,
): Promise<void> {
  if (!isAdmin || account === undefined || own.some((permission) => permission.account === account)) return;
  if (!(await store.get(accounts, account))) throw noAccount(account);
}

function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? '')?.[1];
}
