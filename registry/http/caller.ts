/** Who asks, and whether they may: bearer grants and basic logins, and the challenge for those who have neither. */
import type { IncomingMessage } from 'node:http';
import type { Scope } from '../../contract/scopes.ts';
import type { RegistryGrant } from '../../model/registry-grant.ts';
import type { Caller, Exchange, RegistryContext, RepositoryAction, Right } from '../context.ts';
import { logIn, parseBasic } from '../access/credentials.ts';
import { RegistryError } from '../errors.ts';
import { realmOf } from './realm.ts';
import { isRepositoryName, singleParameter } from './request-target.ts';
import { isPublic } from '../access/visibility.ts';

/** What is asked for. */
interface Demand {
  /** The name of the route. */
  readonly name: string;
  readonly right: Right;
  /** Absent where the right is not one in a repository. */
  readonly repository?: string;
}

/** The service name in challenges: what a client repeats when it asks for a token. */
const challengeService = 'berth-registry';

/** The scope that an access token needs for an action in its account's repositories. */
const scopeOfAction: Record<RepositoryAction, Scope> = { pull: 'read', push: 'push', delete: 'push' };

/** What clients are told to ask for, so that one grant serves a whole push. */
const scopeFor: Record<RepositoryAction, string> = { pull: 'pull', push: 'pull,push', delete: 'delete' };

/**
 * The caller, who has the right. Throws `unauthorized` with a challenge, or `denied`. What is refused here is
 * refused without a look at the repository, so a hidden one cannot be told from an absent one.
 */
export async function authorize(
  context: RegistryContext,
  { request, query }: Exchange,
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
 * Whether a caller may pull from a repository. A grant says all it allows, public repositories included; for a login they are
 * looked up now.
 */
export async function mayPull({ store }: RegistryContext, caller: Caller, repository: string): Promise<boolean> {
  return caller.may(repository, 'pull') || (caller.by === 'login' && (await isPublic(store, repository)));
}

/** Whether a caller may mount blobs from a repository. */
export async function mayMount(context: RegistryContext, caller: Caller, repository: string): Promise<boolean> {
  return caller.mayMountFrom(repository) || (await mayPull(context, caller, repository));
}

/** Whether an access token may read what its account has: list its repositories, and mount from all of them. */
export function tokenMayRead(token: { readonly scopes: readonly Scope[] }): boolean {
  return token.scopes.includes(scopeOfAction.pull);
}

/** What an access token allows in a repository. */
export function tokenMay(
  token: { readonly account: string; readonly scopes: readonly Scope[] },
  repository: string,
  action: RepositoryAction,
): boolean {
  return repository.startsWith(`${token.account}/`) && token.scopes.includes(scopeOfAction[action]);
}

async function isAllowed(context: RegistryContext, caller: Caller, demand: Demand): Promise<boolean> {
  const { right, repository = '' } = demand;
  if (right === 'any') return true;
  if (right === 'catalog') return caller.mayList;
  if (right.some((action) => caller.may(repository, action))) return true;
  return right.includes('pull') && (await mayPull(context, caller, repository));
}

/** What to ask for to have the right. */
function scopeOf({ name, right, repository = '' }: Demand, query: URLSearchParams): string | undefined {
  if (right === 'any') return undefined;
  if (right === 'catalog') return 'registry:catalog:*';
  const [action] = right;
  if (action === undefined) throw new Error(`No action is named for ${name}`);
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
    return grant && grantee(grant);
  }
  const login = parseBasic(authorization);
  const token = login && (await logIn(context, request, login));
  if (!token) return undefined;
  return {
    subject: token.account,
    by: 'login',
    may: (repository, action) => tokenMay(token, repository, action),
    mayMountFrom: (repository) => tokenMay(token, repository, 'pull'),
    mayList: tokenMayRead(token),
  };
}

function grantee({ subject, access, mountsOwn }: RegistryGrant): Caller {
  const may: Caller['may'] = (repository, action) =>
    access.some((each) => each.type === 'repository' && each.name === repository && each.actions.includes(action));
  return {
    subject,
    by: 'grant',
    may,
    mayMountFrom: (repository) =>
      may(repository, 'pull') || (mountsOwn === true && repository.startsWith(`${subject}/`)),
    mayList: access.some((each) => each.type === 'registry'),
  };
}

/** 401 for all, so that clients ask for another grant; the words are for the one who reads them when that does not help. */
function unauthorized(
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
