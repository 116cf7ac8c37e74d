/**
 * Every route of the API × every kind of caller. The table below is written by hand: a route that is not in it, or whose access is
 * changed in the contract alone, fails the tests.
 */
import type { Express } from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newApp } from '../../api/app.ts';
import { apiRoutes } from '../../api/routes.ts';
import type { Api } from '../../api/dependencies.ts';
import { addAdmin, addUser, logIn, ownPage } from '../../api/testing/people.ts';
import { digestOf, openTestApi } from '../../api/testing/test-api.ts';
import type { TestApi } from '../../api/testing/test-api.ts';
import { scopes } from '../../contract/scopes.ts';
import type { Scope } from '../../contract/scopes.ts';
import { silentLog } from '../../core/log/log.ts';
import { openMetrics } from '../../core/metrics/metrics.ts';
import { accessTokens, hashToken, newAccessToken } from '../../model/access-token.ts';
import type { AccessToken } from '../../model/access-token.ts';
import { setMember } from '../../model/members.ts';

/**
 * A scope, or `open`: no token is needed. `proof`: no token helps, since the request itself proves who the caller is. `any`: any valid
 * token. `login`: the log-in of a user. `own`: any valid token of the account. `owner`: an owner of the account, with the scope `manage`. `admin`: an administrator who
 * has logged in. `spawn-token`: the one in the path, and no access token.
 */
type Access = Scope | 'open' | 'proof' | 'any' | 'login' | 'own' | 'owner' | 'admin' | 'spawn-token';

interface Row {
  readonly access: Access;
  readonly body?: object;
  /** What a caller gets that may ask, if not what was asked for. */
  readonly whenAllowed?: Kind;
  /** What one caller gets instead. */
  readonly except?: Partial<Record<CallerName, Kind>>;
}

type Kind = 'allowed' | 'unauthorized' | 'forbidden' | 'absent';

const openTo = (access: Access, body?: object): Row => ({ access, ...(body && { body }) });

const spawned = { key: 'matrix', lock: 'matrix' };
const newToken = { name: 'new', scopes: ['manage'] };
const update = { image_tag: 'latest' };
const trustRule = { repository: 'acme/draw' };

const older = (prefix: string): Record<string, Row> => ({
  [`GET ${prefix}/auth`]: openTo('any'),
  [`POST ${prefix}/user/:account/service`]: openTo('manage', { name: 'new' }),
  [`GET ${prefix}/user/:account/services`]: openTo('read'),
  [`POST ${prefix}/user/:account/service/:service/spawn`]: openTo('connect', { lock: spawned.lock }),
  [`POST ${prefix}/user/:account/service/:service/fetch`]: openTo('connect', { lock: 'held' }),
  [`GET ${prefix}/backend/:backend_name/status`]: openTo('open'),
  [`GET ${prefix}/backend/:backend_name/status/stream`]: openTo('open'),
  [`GET ${prefix}/backend/:backend_name/logs`]: openTo('read'),
  [`GET ${prefix}/backend/:backend_name/ready`]: openTo('open'),
  [`POST ${prefix}/backend/:backend_name/terminate`]: openTo('connect'),
});

const table: Readonly<Record<string, Row>> = {
  'POST /v2/service/:account/:service/connect': openTo('connect', { key: spawned.key }),
  'POST /v2/service/:account/:service/:environment/connect': openTo('connect'),
  'GET /v2/backend/:backend_id/status': openTo('open'),
  'GET /v2/backend/:backend_id/status/stream': openTo('open'),
  'GET /v2/backend/:backend_id': openTo('read'),
  'GET /v2/backend/:backend_id/logs/stream': openTo('read'),
  'GET /v2/backend/:backend_id/metrics/stream': openTo('read'),
  'POST /v2/backend/:backend_id/terminate': openTo('connect', { hard: true }),
  'GET /v2/service/:account/:service/backends': openTo('read'),
  'GET /v2/account/:account/backends': openTo('read'),
  'POST /v2/account/:account/service': openTo('manage', { name: 'new' }),
  'GET /v2/account/:account/services': openTo('read'),
  'GET /v2/account/:account/tokens': openTo('manage'),
  'POST /v2/account/:account/token': openTo('manage', newToken),
  // The token of this test acts for no user, and a member may revoke only tokens that act for that member.
  'POST /v2/account/:account/token/:token_id/revoke': { access: 'manage', except: { 'a member': 'absent' } },
  'GET /v2/service/:account/:service': openTo('read'),
  'GET /v2/service/:account/:service/images': openTo('read'),
  'POST /v2/service/:account/:service/images': openTo('push'),
  'GET /v2/service/:account/:service/images/:digest/archive': openTo('read'),
  'POST /v2/service/:account/:service/update': openTo('deploy', update),
  'POST /v2/service/:account/:service/:environment/update': openTo('deploy', update),
  'POST /v2/service/:account/:service/delete': openTo('manage'),
  'GET /v2/service/:account/:service/environments': openTo('read'),
  'POST /v2/service/:account/:service/environments': openTo('manage', { name: 'new' }),
  'POST /v2/service/:account/:service/:environment/delete': openTo('manage'),
  'GET /v2/service/:account/:service/settings': openTo('read'),
  'POST /v2/service/:account/:service/settings': openTo('manage', {}),
  'GET /v2/service/:account/:service/visibility': openTo('read'),
  'POST /v2/service/:account/:service/visibility': openTo('manage', { public: false }),
  ...older('/v1'),
  ...older(''),
  'GET /user/:account/service/:service/image': openTo('own'),
  'GET /service/:account/:service/image-name': openTo('own'),
  'POST /service/:account/:service/terminate-backends': openTo('connect', { before: '2000-01-01T00:00:00Z' }),
  'POST /user/:account/service/:service/token': openTo('manage'),
  'POST /token/:token/spawn': openTo('spawn-token'),
  'DELETE /token/:token': openTo('manage'),
  'GET /ready/:backend/:token': openTo('open'),
  'GET /ready/:backend/:token/events': openTo('open'),
  'GET /v2/account/:account/members': openTo('owner'),
  'GET /v2/account/:account/limits': openTo('read'),
  'POST /v2/account/:account/limits': openTo('admin', {}),
  'GET /v2/account/:account/audit': openTo('owner'),
  'GET /v2/audit': openTo('admin'),
  'POST /v2/account/:account/trust': openTo('owner', trustRule),
  'GET /v2/account/:account/trusts': openTo('owner'),
  'POST /v2/account/:account/trust/:rule_id/delete': { access: 'owner', whenAllowed: 'absent' },
  'POST /v2/account/:account/oidc-token': openTo('proof'),
  'POST /v2/account/:account/member': openTo('owner', { user_email: 'viewer@example.com', role: 'viewer' }),
  'POST /v2/account/:account/member/:user_email/remove': openTo('owner'),
  'GET /v2/accounts': openTo('any'),
  // Requests without a body: callers that may ask get as far as the body.
  'POST /v2/account': openTo('admin'),
  'POST /v2/user': openTo('admin'),
  'POST /v2/user/:user_email/invite': openTo('admin'),
  'POST /v2/user/:user_email/update': openTo('admin'),
  'GET /v2/users': openTo('admin'),
  'POST /v2/user/password': openTo('login'),
  'POST /user-session/:uuid/delete': { access: 'login', whenAllowed: 'absent' },
  'GET /v2/user/logins': openTo('login'),
  'POST /v2/user/logins/end-others': openTo('login'),
  'POST /v2/session': openTo('proof'),
  'POST /v2/setup': openTo('proof'),
  'POST /v2/invitation': openTo('proof'),
  'POST /cli-login': openTo('proof'),
  'POST /cli-login/:token': openTo('proof'),
  'POST /cli-login/:token/complete': openTo('proof'),
  'GET /cli-login/:token/status/stream': openTo('proof'),
  'GET /cli-login/:token': openTo('proof'),
  'POST /login': openTo('proof'),
  'POST /logout': openTo('proof'),
  'POST /setup': openTo('proof'),
  'POST /invitation': openTo('proof'),
  'GET /login': openTo('open'),
  'GET /setup': openTo('proof'),
  'GET /invitation': openTo('proof'),
  'GET /openapi.json': openTo('open'),
  'GET /docs': openTo('open'),
  'GET /docs/page.js': openTo('open'),
  'GET /docs/swagger-ui-bundle.js': openTo('open'),
  'GET /docs/swagger-ui.css': openTo('open'),
};

/** Callers with an `Authorization` header, or none. */
const bearers = [
  'without a token',
  'with a malformed header',
  'with a token that was never issued',
  'with an expired token',
  'with a revoked token',
  'of another account',
  'limited to another service',
  'limited to the service',
  ...scopes.map((scope) => `with the scope ${scope} alone` as const),
  'with all scopes',
] as const;

/** Callers that have logged in with a browser. */
const people = ['a viewer', 'a member', 'an owner', 'an administrator'] as const;

type CallerName = (typeof bearers)[number] | (typeof people)[number];

let api: TestApi;
const headersOf = new Map<CallerName, Readonly<Record<string, string>>>();

beforeAll(async () => {
  api = await openTestApi();
  const setBearer = (name: CallerName, token: string) => headersOf.set(name, { authorization: `Bearer ${token}` });
  const changed = async (change: Partial<AccessToken>) => {
    const token = await api.tokenFor('acme', scopes);
    await api.store.update(accessTokens, hashToken(token), (current) => ({ ...current, ...change }));
    return token;
  };
  headersOf.set('with a malformed header', { authorization: `Token ${api.token}` });
  setBearer('with a token that was never issued', newAccessToken());
  setBearer('with an expired token', await changed({ expiresAt: new Date(Date.now() - 1) }));
  setBearer('with a revoked token', await changed({ revokedAt: new Date() }));
  setBearer('of another account', await api.tokenFor('other', scopes));
  setBearer('limited to another service', await changed({ services: ['other'] }));
  setBearer('limited to the service', await changed({ services: ['draw', ...victims] }));
  for (const scope of scopes) setBearer(`with the scope ${scope} alone`, await api.tokenFor('acme', [scope]));
  setBearer('with all scopes', api.token);
  await addUser(api, 'viewer@example.com', 'acme', 'viewer');
  await addUser(api, 'member@example.com', 'acme', 'member');
  await addUser(api, 'owner@example.com', 'acme', 'owner');
  await addUser(api, 'removed@example.com', 'acme', 'viewer');
  await addAdmin(api, 'administrator@example.com', 'other');
  for (const person of people) {
    const { cookie } = await logIn(api, `${person.split(' ').at(-1)}@example.com`);
    headersOf.set(person, { ...ownPage, cookie });
  }
});

afterAll(async () => await api[Symbol.asyncDispose]());

test('every route has a row, and every row a route', () => {
  expect(routesOf(appWithRoutes()).toSorted()).toEqual(Object.keys(table).toSorted());
});

test.each(Object.keys(table).filter((route) => table[route]?.access !== 'proof'))('%s', async (route) => {
  const row = rowOf(route);
  const answers: Record<string, Kind> = {};
  const expected: Record<string, Kind> = {};
  for (const caller of [...bearers, ...people]) {
    answers[caller] = kindOf(await statusFor(route, row, caller));
    const kind = expectedFor(route, row.access, caller);
    expected[caller] = row.except?.[caller] ?? (kind === 'allowed' ? (row.whenAllowed ?? kind) : kind);
  }
  expect(answers).toEqual(expected);
});

const tooMany = 429;

test.each(Object.keys(table).filter((route) => table[route]?.access === 'proof'))(
  '%s answers the same with any access token as without',
  async (route) => {
    const without = await statusFor(route, rowOf(route), 'without a token');
    const statuses = new Set<number>();
    for (const caller of bearers) statuses.add(await statusFor(route, rowOf(route), caller));
    statuses.delete(tooMany);
    expect([...statuses]).toEqual(without === tooMany ? [] : [without]);
  },
);

test('a route that needs a spawn token refuses any other text in its place', async () => {
  const { status } = await api.call('POST', `/token/${api.token}/spawn`, {
    headers: { authorization: `Bearer ${api.token}` },
  });
  expect(status).toBe(404);
});

function rowOf(route: string): Row {
  const row = table[route];
  if (!row) throw new Error(`No row for ${route}`);
  return row;
}

function expectedFor(route: string, access: Access, caller: CallerName): Kind {
  if (access === 'open' || access === 'proof' || access === 'spawn-token') return 'allowed';
  if (invalid.includes(caller)) return 'unauthorized';
  if (access === 'any' || caller === 'an administrator') return 'allowed';
  if (access === 'login') return people.some((person) => person === caller) ? 'allowed' : 'forbidden';
  if (access === 'admin') return 'forbidden';
  if (caller === 'of another account') return 'absent';
  const isLimited = caller.startsWith('limited to ');
  // Account-wide things are closed to a token that is limited to services, whichever they are. Lists have what concerns these.
  if (isLimited && isAccountWide(route)) return isList(route) ? 'allowed' : 'forbidden';
  if (caller === 'limited to another service') return 'absent';
  return access === 'own' || scopesOf(caller, access).includes(access === 'owner' ? 'manage' : access)
    ? 'allowed'
    : 'forbidden';
}

const invalid: readonly CallerName[] = [
  'without a token',
  'with a malformed header',
  'with a token that was never issued',
  'with an expired token',
  'with a revoked token',
];

function isAccountWide(route: string): boolean {
  return route.includes(':account') && !route.includes(':service');
}

/** Lists that have, for a token that is limited to services, what concerns these. */
function isList(route: string): boolean {
  return route.startsWith('GET ') && /\/:account\/(?:services|backends)$/.test(route);
}

/** The scopes that a valid caller of the account has, for rows that ask for a scope or an owner. */
function scopesOf(caller: CallerName, access: Access): readonly Scope[] {
  if (caller === 'a viewer') return ['read'];
  if (caller === 'a member' && access === 'owner') return [];
  return scopes.filter((scope) => !caller.endsWith(' alone') || caller === `with the scope ${scope} alone`);
}

function kindOf(status: number): Kind {
  const kinds: Readonly<Record<number, Kind>> = { 401: 'unauthorized', 403: 'forbidden', 404: 'absent' };
  return kinds[status] ?? 'allowed';
}

/** The status of a request to a route, for things of `acme` that nothing else uses. */
async function statusFor(route: string, { body }: Row, caller: CallerName): Promise<number> {
  const [method = '', pattern = ''] = route.split(' ');
  const path = await pathOf(pattern);
  const headers = {
    accept: 'text/event-stream',
    ...(method === 'POST' && { 'content-type': 'application/json' }),
    ...headersOf.get(caller),
  };
  const answer = await fetch(api.base + path, {
    method,
    headers,
    redirect: 'manual',
    ...(body && { body: JSON.stringify(body) }),
  });
  await answer.body?.cancel();
  return answer.status;
}

async function pathOf(pattern: string): Promise<string> {
  if (pattern.includes(':user_email')) await setMember(api.store, 'acme', 'removed@example.com', 'viewer');
  const backend = (
    await api.post('/v1/user/acme/service/draw/spawn', pattern.endsWith('/fetch') ? { lock: 'held' } : {})
  ).body;
  const values: Readonly<Record<string, string>> = {
    account: 'acme',
    service: pattern.endsWith('/:service/delete') ? await newServiceName() : 'draw',
    environment: 'default',
    user_email: 'removed@example.com',
    uuid: '0'.repeat(20),
    digest: digestOf('a'),
    backend: backend.name,
    backend_id: backend.name,
    backend_name: backend.name,
    token_id: pattern.includes(':token_id') ? (await api.post('/v2/account/acme/token', newToken)).body.id : '',
    token: pattern.startsWith('/ready/')
      ? backend.url.split('/').at(-2)
      : (await api.post('/user/acme/service/draw/token')).body.token,
  };
  return pattern.replaceAll(/:(\w+)/g, (_whole, name: string) => values[name] ?? name);
}

/** Services to delete. */
const victims = Array.from({ length: 32 }, (_, i) => `victim-${i}`);
let usedVictims = 0;

async function newServiceName(): Promise<string> {
  const name = victims[usedVictims++] ?? '';
  await api.addService(name);
  return name;
}

/** The application with all its routes; no request can be answered. */
function appWithRoutes(): Express {
  const deps = { log: silentLog(), metrics: openMetrics(), urls: {} };
  return newApp(deps as unknown as Api, apiRoutes);
}

/** The routes that Express answers, apart from preflight requests. */
function routesOf(app: Express): string[] {
  return app.router.stack
    .flatMap(({ route }) => route?.stack.map(({ method }) => `${method.toUpperCase()} ${route.path}`) ?? [])
    .filter((each, i, all) => !each.startsWith('OPTIONS ') && all.indexOf(each) === i);
}
