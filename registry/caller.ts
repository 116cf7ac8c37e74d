/** Who asks, and whether they may: bearer grants and basic logins, and the challenge for those who have neither. */
import type { IncomingMessage } from 'node:http';
import type { AccessRight } from '../model/access-token.ts';
import type { RepositoryAccess } from '../model/registry-grant.ts';
import type { Exchange, RegistryContext } from './context.ts';
import { checkLogin, parseBasic } from './credentials.ts';
import { RegistryError } from './errors.ts';
import { realmOf } from './realm.ts';
import { isRepositoryName, singleParameter } from './routes.ts';
import type { GrantedOperation } from './routes.ts';

export type RepositoryAction = RepositoryAccess['actions'][number];

export interface Caller {
  /** The account or node; empty for an anonymous grant. */
  readonly subject: string;
  readonly by: 'grant' | 'login';
  may(repository: string, action: RepositoryAction): boolean;
}

/** The service name in challenges: what a client repeats when it asks for a token. */
const challengeService = 'berth-registry';

/** Which right of an access token stands behind an action in its account's repositories. */
const rightFor: Record<RepositoryAction, AccessRight> = { pull: 'read', push: 'push', delete: 'push' };

/** Any one of these actions is enough. Who pushes needs to ask what is there already, even without the right to pull. */
const actionsFor: Record<Exclude<GrantedOperation['name'], 'ping'>, RepositoryAction[]> = {
  'blob-get': ['pull'],
  'blob-head': ['pull', 'push'],
  'blob-delete': ['delete'],
  'upload-start': ['push'],
  'upload-append': ['push'],
  'upload-finish': ['push'],
  'upload-status': ['push'],
  // Not `delete`: clients cancel an upload with the grant they pushed with.
  'upload-cancel': ['push'],
  'manifest-get': ['pull'],
  'manifest-head': ['pull', 'push'],
  'manifest-put': ['push'],
  'manifest-delete': ['delete'],
  'tags-list': ['pull'],
  'referrers-list': ['pull'],
};

/** What clients are told to ask for, so that one grant serves a whole push. */
const scopeFor: Record<RepositoryAction, string> = { pull: 'pull', push: 'pull,push', delete: 'delete' };

/**
 * The caller of an operation, who may do it. Throws `unauthorized` with a challenge, or `denied`. What is refused here is
 * refused without a look at the repository, so a hidden one cannot be told from an absent one.
 */
export async function authorize(
  context: RegistryContext,
  { request, query }: Exchange,
  operation: GrantedOperation,
): Promise<Caller> {
  const caller = await identify(context, request);
  if (operation.name === 'ping') {
    if (caller) return caller;
    throw unauthorized(context, request, {});
  }
  const { repository } = operation;
  const [action, ...others] = actionsFor[operation.name];
  if (action === undefined) throw new Error(`No action is named for ${operation.name}`);
  if (caller && [action, ...others].some((each) => caller.may(repository, each))) return caller;
  if (caller?.by === 'login') throw new RegistryError('denied');
  const scopes = [`repository:${repository}:${scopeFor[action]}`];
  const source = operation.name === 'upload-start' ? singleParameter(query, 'from') : undefined;
  if (source !== undefined && isRepositoryName(source)) scopes.push(`repository:${source}:pull`);
  throw unauthorized(context, request, { scope: scopes.join(' '), ...(caller && { error: 'insufficient_scope' }) });
}

/** What an access token allows in a repository. */
export function tokenMay(
  token: { readonly account: string; readonly rights: readonly AccessRight[] },
  repository: string,
  action: RepositoryAction,
): boolean {
  return repository.startsWith(`${token.account}/`) && token.rights.includes(rightFor[action]);
}

async function identify(context: RegistryContext, request: IncomingMessage): Promise<Caller | undefined> {
  const { authorization } = request.headers;
  if (authorization === undefined) return undefined;
  const bearer = /^bearer +(\S+)$/i.exec(authorization)?.[1];
  if (bearer !== undefined) {
    const grant = await context.grants.verify(bearer, context.clock.now());
    if (!grant) return undefined;
    return {
      subject: grant.subject,
      by: 'grant',
      may: (repository, action) =>
        grant.access.some((access) => access.name === repository && access.actions.includes(action)),
    };
  }
  const login = parseBasic(authorization);
  const token = login && (await checkLogin(context, login));
  if (!token) return undefined;
  return { subject: token.account, by: 'login', may: (repository, action) => tokenMay(token, repository, action) };
}

function unauthorized(
  context: RegistryContext,
  request: IncomingMessage,
  about: { readonly scope?: string; readonly error?: string },
): RegistryError {
  const fields = { realm: realmOf(context.publicUrl, request), service: challengeService, ...about };
  const challenge = Object.entries(fields).map(([name, value]) => `${name}="${value}"`);
  return new RegistryError('unauthorized', { headers: { 'www-authenticate': `Bearer ${challenge.join(',')}` } });
}
