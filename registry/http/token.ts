/**
 * Issues bearer grants for credentials: `GET /token` with a basic login (distribution's token specification) and `POST /token`
 * with a form (its OAuth 2 variant). A grant omits actions that the client may not perform.
 */
import type { RequestContext, RegistryContext, RepositoryAction } from '../context.ts';
import { clientAddress, networkOf } from '../../core/http/client-address.ts';
import type { Store } from '../../core/store/store.ts';
import type { CatalogAccess, RepositoryAccess } from '../../model/registry-grant.ts';
import { sendJson } from '../../core/http/json.ts';
import { isPublic, loginMay, mayList, mayReadAll, realmOf } from './caller.ts';
import { logIn, parseBasic } from '../access/credentials.ts';
import type { LoggedIn, Login } from '../access/credentials.ts';
import { RegistryError } from '../errors.ts';
import { readBody } from './request-body.ts';
import { isRepositoryName } from './request-target.ts';

/** Long enough to start a push, short enough that revoking an access token soon takes effect. */
const grantSeconds = 300;

/** A form with credentials and a few scopes is far smaller. */
const maxFormBytes = 64 * 1024;

/** A push names one repository, or a few when it mounts; no client needs more. */
const maxScopes = 32;

const allActions: readonly RepositoryAction[] = ['pull', 'push', 'delete'];

/** Answers a grant. Without credentials, it allows to pull public images. Throws `credentials-wrong`. */
export async function tokenGet(context: RegistryContext, incoming: RequestContext): Promise<void> {
  const { authorization } = incoming.request.headers;
  let loggedIn: LoggedIn | undefined;
  if (authorization !== undefined) {
    const login = parseBasic(authorization);
    loggedIn = login && (await logIn(context, incoming.request, login));
    if (!loggedIn) throw wrongCredentials(context, incoming);
  }
  await grant(context, incoming, { loggedIn, scopes: incoming.query.getAll('scope') });
}

/** As `tokenGet`, with credentials from a form. An access token is accepted as a refresh token too. */
export async function tokenPost(context: RegistryContext, incoming: RequestContext): Promise<void> {
  const type = incoming.request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded') throw new RegistryError('body-invalid');
  // The account is not known before the form is read.
  const account = networkOf(clientAddress(incoming.request, context.behindLoadBalancer));
  const limit = { maxBytes: maxFormBytes, tooLarge: 'body-invalid', account } as const;
  const body = await readBody(incoming.request, context, limit);
  const form = new URLSearchParams(body.toString('utf8'));
  const loggedIn = await logIn(context, incoming.request, loginOf(form));
  if (!loggedIn) throw wrongCredentials(context, incoming);
  await grant(context, incoming, { loggedIn, scopes: form.getAll('scope') });
}

function loginOf(form: URLSearchParams): Login {
  const kind = form.get('grant_type');
  if (kind === 'password') return { user: form.get('username') ?? '', password: form.get('password') ?? '' };
  if (kind === 'refresh_token') return { user: form.get('refresh_token') ?? '', password: '' };
  throw new RegistryError('body-invalid');
}

async function grant(
  context: RegistryContext,
  { response, logFields }: RequestContext,
  { loggedIn, scopes }: { loggedIn: LoggedIn | undefined; scopes: readonly string[] },
): Promise<void> {
  const wanted = scopes.flatMap((scope) => scope.split(' ')).filter((scope) => scope !== '');
  if (wanted.length > maxScopes) throw new RegistryError('parameter-invalid', { detail: 'Too many scopes' });
  const access = [...(await permitted(context.store, loggedIn, wanted)), ...catalogAccess(loggedIn, wanted)];
  const now = context.clock.now();
  const subject = loggedIn?.account ?? '';
  logFields.subject = subject;
  const mountsOwn = loggedIn !== undefined && mayReadAll(loggedIn);
  const granted = {
    subject,
    access,
    ...(loggedIn && { token: loggedIn.permissions.token }),
    ...(mountsOwn && { mountsOwn }),
  };
  const bearer = await context.grants.issue(granted, grantSeconds, now);
  const scope = access.map(({ type, name, actions }) => `${type}:${name}:${actions.join(',')}`).join(' ');
  const body = {
    token: bearer,
    access_token: bearer,
    token_type: 'Bearer',
    expires_in: grantSeconds,
    issued_at: now.toISOString(),
    scope,
  };
  sendJson(response, 200, body, { 'cache-control': 'no-store' });
}

/**
 * The requested scopes that an access token or a public repository allows. Merges several scopes for one repository.
 */
async function permitted(
  store: Store,
  loggedIn: LoggedIn | undefined,
  scopes: readonly string[],
): Promise<RepositoryAccess[]> {
  const actionsByName = new Map<string, Set<RepositoryAction>>();
  for (const scope of scopes) {
    const { name, actions } = parseScope(scope);
    if (!isRepositoryName(name)) continue;
    const allowed = actions.filter((action) => loggedIn && loginMay(loggedIn, name, action));
    if (actions.includes('pull') && !allowed.includes('pull') && (await isPublic(store, name))) allowed.push('pull');
    if (allowed.length === 0) continue;
    const known = actionsByName.get(name) ?? new Set();
    for (const action of allowed) known.add(action);
    actionsByName.set(name, known);
  }
  return Array.from(actionsByName, ([name, actions]) => ({ type: 'repository' as const, name, actions: [...actions] }));
}

function catalogAccess(loggedIn: LoggedIn | undefined, scopes: readonly string[]): CatalogAccess[] {
  if (!loggedIn || !mayList(loggedIn) || !scopes.includes('registry:catalog:*')) return [];
  return [{ type: 'registry', name: 'catalog', actions: ['*'] }];
}

/** Parses `repository:<name>:<action>,<action>`. Any other scope has no actions. */
function parseScope(scope: string): { name: string; actions: readonly RepositoryAction[] } {
  const [, name = '', list = ''] = /^repository(?:\([a-z0-9]+\))?:([^:]+):([a-z,*]+)$/.exec(scope) ?? [];
  const wanted = list.split(',');
  return { name, actions: allActions.filter((action) => wanted.includes(action) || wanted.includes('*')) };
}

function wrongCredentials(context: RegistryContext, { request }: RequestContext): RegistryError {
  const realm = realmOf(context.publicUrl, request);
  return new RegistryError('credentials-wrong', { headers: { 'www-authenticate': `Basic realm="${realm}"` } });
}
