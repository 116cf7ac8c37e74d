/** Identifies the caller by a bearer grant or a basic login, checks its rights, and answers other clients with a challenge. */
import type { IncomingMessage } from 'node:http';
import type { Scope } from '../../contract/scopes.ts';
import type { Store } from '../../core/store/store.ts';
import { covers, permissionIn } from '../../model/permissions.ts';
import type { AccountPermission } from '../../model/permissions.ts';
import type { RegistryGrant } from '../../model/registry-grant.ts';
import { findService } from '../../model/service.ts';
import type { Caller, RequestContext, RegistryContext, RepositoryAction, Right } from '../context.ts';
import { logIn, parseBasic } from '../access/credentials.ts';
import { RegistryError } from '../errors.ts';
import { isRepositoryName, singleParameter } from './request-target.ts';

/** What a request requires of its caller. */
interface Demand {
  /** The name of the route. */
  readonly name: string;
  readonly right: Right;
  /** Absent if the right does not concern a repository. */
  readonly repository?: string;
}

/** The service name in challenges, which clients repeat when they request a token. */
const challengeService = 'berth-registry';

/** A host name, IPv4 address or bracketed IPv6 address, with or without a port: nothing that could end a quoted string. */
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[a-f0-9:.]{2,45}\])(?::[0-9]{1,5})?$/i;

/** The scope that an access token needs for an action in a repository of its account. */
const scopeOfAction: Record<RepositoryAction, Scope> = { pull: 'read', push: 'push', delete: 'push' };

/** The scope in challenges. One grant serves a whole push. */
const scopeFor: Record<RepositoryAction, string> = { pull: 'pull', push: 'pull,push', delete: 'delete' };

/**
 * Returns the caller if it has the right. Throws `unauthorized` with a challenge, or `denied`. The decision does not depend on
 * whether the repository exists, so a client cannot distinguish a private repository from an absent one.
 */
export async function authorize(
  context: RegistryContext,
  { request, query }: RequestContext,
  demand: Demand,
): Promise<Caller> {
  const caller = await identify(context, request);
  context.rates.admit(request, caller?.subject);
  if (caller && (await isAllowed(context, caller, demand))) return caller;
  if (caller?.by === 'login') throw new RegistryError('denied');
  const scope = scopeOf(demand, query);
  const about = { ...(scope && { scope }), ...(caller && { error: 'insufficient_scope' }) };
  throw unauthorized(context, request, about, caller);
}

/**
 * Whether a caller may pull from a repository. A grant lists all that it allows, public repositories included; for a login, the
 * repository is looked up.
 */
export async function mayPull({ store }: RegistryContext, caller: Caller, repository: string): Promise<boolean> {
  return caller.may(repository, 'pull') || (caller.by === 'login' && (await isPublic(store, repository)));
}

/** Whether a caller may mount blobs from a repository. */
export async function mayMount(context: RegistryContext, caller: Caller, repository: string): Promise<boolean> {
  return caller.mayMountFrom(repository) || (await mayPull(context, caller, repository));
}

/** Whether any client may pull from a repository. A private repository is reported like an absent one. */
export async function isPublic(store: Store, repository: string): Promise<boolean> {
  return (await findService(store, repository))?.public === true;
}

/**
 * Where clients request tokens, as an absolute URL. Without a public URL, it is derived from the Host header, which can only
 * mislead the client that sent it. `X-Forwarded-*` are ignored. Throws `host-invalid`.
 */
export function realmOf(publicUrl: string | undefined, request: IncomingMessage): string {
  if (publicUrl !== undefined) return new URL('/token', publicUrl).href;
  const { host } = request.headers;
  if (host === undefined || !hostPattern.test(host)) throw new RegistryError('host-invalid');
  const scheme = 'encrypted' in request.socket ? 'https' : 'http';
  return `${scheme}://${host}/token`;
}

/** Whether a login may list repositories of its account. */
export function mayList({ scopes }: AccountPermission): boolean {
  return scopes.includes(scopeOfAction.pull);
}

/** Whether a login may mount from all repositories of its account. */
export function mayReadAll(permission: AccountPermission): boolean {
  return permission.services === undefined && mayList(permission);
}

/** What a login allows in a repository. */
export function loginMay(permission: AccountPermission, repository: string, action: RepositoryAction): boolean {
  const [account, service = ''] = repository.split('/', 2);
  return (
    account === permission.account && covers(permission, service) && permission.scopes.includes(scopeOfAction[action])
  );
}

async function isAllowed(context: RegistryContext, caller: Caller, demand: Demand): Promise<boolean> {
  const { right, repository = '' } = demand;
  if (right === 'any') return true;
  if (right === 'catalog') return caller.mayList;
  if (right.some((action) => caller.may(repository, action))) return true;
  return right.includes('pull') && (await mayPull(context, caller, repository));
}

/** The scope that a client must request to have the right. */
function scopeOf({ name, right, repository = '' }: Demand, query: URLSearchParams): string | undefined {
  if (right === 'any') return undefined;
  if (right === 'catalog') return 'registry:catalog:*';
  const [action] = right;
  if (action === undefined) throw new Error(`The route ${name} has no action`);
  const scope = `repository:${repository}:${scopeFor[action]}`;
  const source = name === 'upload-start' ? singleParameter(query, 'from') : undefined;
  return source !== undefined && isRepositoryName(source) ? `${scope} repository:${source}:pull` : scope;
}

async function identify(context: RegistryContext, request: IncomingMessage): Promise<Caller | undefined> {
  const { authorization } = request.headers;
  if (authorization === undefined) return undefined;
  const bearer = /^bearer +(\S+)$/i.exec(authorization)?.[1];
  if (bearer !== undefined) {
    const grant = await context.grants.verify(bearer, context.clock.now());
    return grant && (await callerByGrant(context, grant));
  }
  const login = parseBasic(authorization);
  const found = login && (await logIn(context, request, login));
  if (!found) return undefined;
  return {
    subject: found.account,
    by: 'login',
    permissions: found.permissions,
    may: (repository, action) => loginMay(found, repository, action),
    mayMountFrom: (repository) => loginMay(found, repository, 'pull'),
    mayList: mayList(found),
    ...(found.services && { services: found.services }),
  };
}

/** The caller behind a grant, or `undefined` if its access token is not valid any more. */
async function callerByGrant({ tokens }: RegistryContext, grant: RegistryGrant): Promise<Caller | undefined> {
  const { subject, access, mountsOwn, token } = grant;
  const permissions = token === undefined ? undefined : await tokens.permissionsOf(token);
  const permission = permissions && permissionIn(permissions, subject);
  if (token !== undefined && !permission) return undefined;
  // The user may have become a viewer. Pulls are not checked again: the repository may be public.
  const isWithdrawn = (repository: string, action: RepositoryAction) =>
    permission !== undefined && action !== 'pull' && !loginMay(permission, repository, action);
  const may: Caller['may'] = (repository, action) =>
    !isWithdrawn(repository, action) &&
    access.some((each) => each.type === 'repository' && each.name === repository && each.actions.includes(action));
  return {
    subject,
    by: 'grant',
    ...(permissions && { permissions }),
    may,
    mayMountFrom: (repository) =>
      may(repository, 'pull') || (mountsOwn === true && repository.startsWith(`${subject}/`)),
    mayList: access.some((each) => each.type === 'registry'),
    ...(permission?.services && { services: permission.services }),
  };
}

/** Always 401, so that clients request another grant. The user reads the message if that grant does not help. */
export function unauthorized(
  context: RegistryContext,
  request: IncomingMessage,
  about: { readonly scope?: string; readonly error?: string },
  caller?: Caller,
): RegistryError {
  const fields = { realm: realmOf(context.publicUrl, request), service: challengeService, ...about };
  const challenge = Object.entries(fields).map(([name, value]) => `${name}="${value}"`);
  const headers = { 'www-authenticate': `Bearer ${challenge.join(',')}` };
  return new RegistryError(caller?.subject ? 'grant-denied' : 'unauthorized', { headers });
}
