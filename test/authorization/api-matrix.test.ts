/**
 * Every route of the API × every kind of access token. The table below is written by hand: a route that is not in it, or whose access
 * is changed in the contract alone, fails the tests.
 */
import type { Express } from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newApp } from '../../api/app.ts';
import { apiRoutes } from '../../api/routes.ts';
import type { Api } from '../../api/dependencies.ts';
import { digestOf, openTestApi } from '../../api/testing/test-api.ts';
import type { TestApi } from '../../api/testing/test-api.ts';
import { scopes } from '../../contract/scopes.ts';
import type { Scope } from '../../contract/scopes.ts';
import { silentLog } from '../../core/log/log.ts';
import { openMetrics } from '../../core/metrics/metrics.ts';
import { accessTokens, hashToken, newAccessToken } from '../../model/access-token.ts';

/** `open`: no token is needed. `any`: any valid token. `own`: any valid token of the account. `spawn-token`: the one in the path, and no access token. */
type Access = Scope | 'open' | 'any' | 'own' | 'spawn-token';

interface Row {
  readonly access: Access;
  readonly body?: object;
}

const openTo = (access: Access, body?: object): Row => ({ access, ...(body && { body }) });

const spawned = { key: 'matrix', lock: 'matrix' };
const newToken = { name: 'new', scopes: ['manage'] };
const update = { image_tag: 'latest' };

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
  'POST /v2/account/:account/token/:token_id/revoke': openTo('manage'),
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
};

/** Who asks: a name for the test, and the authorization header. */
const callers = [
  'without a token',
  'with a malformed header',
  'with a token that was never issued',
  'with an expired token',
  'with a revoked token',
  'of another account',
  ...scopes.map((scope) => `with the scope ${scope} alone` as const),
  'with all scopes',
] as const;

type CallerName = (typeof callers)[number];

let api: TestApi;
const authorizations = new Map<CallerName, string>();

beforeAll(async () => {
  api = await openTestApi();
  const changed = async (change: { expiresAt?: Date; revokedAt?: Date }) => {
    const token = await api.tokenFor('acme', scopes);
    await api.store.update(accessTokens, hashToken(token), (current) => ({ ...current, ...change }));
    return `Bearer ${token}`;
  };
  authorizations.set('with a malformed header', `Token ${api.token}`);
  authorizations.set('with a token that was never issued', `Bearer ${newAccessToken()}`);
  authorizations.set('with an expired token', await changed({ expiresAt: new Date(Date.now() - 1) }));
  authorizations.set('with a revoked token', await changed({ revokedAt: new Date() }));
  authorizations.set('of another account', `Bearer ${await api.tokenFor('other', scopes)}`);
  for (const scope of scopes) {
    authorizations.set(`with the scope ${scope} alone`, `Bearer ${await api.tokenFor('acme', [scope])}`);
  }
  authorizations.set('with all scopes', `Bearer ${api.token}`);
});

afterAll(async () => await api[Symbol.asyncDispose]());

test('every route has a row, and every row a route', () => {
  expect(routesOf(appWithRoutes()).toSorted()).toEqual(Object.keys(table).toSorted());
});

test.each(Object.keys(table))('%s', async (route) => {
  const row = table[route];
  if (!row) throw new Error(`No row for ${route}`);
  const answers: Record<string, string> = {};
  const expected: Record<string, string> = {};
  for (const caller of callers) {
    answers[caller] = kindOf(await statusFor(route, row, authorizations.get(caller)));
    expected[caller] = expectedFor(row.access, caller);
  }
  expect(answers).toEqual(expected);
});

test('a route that needs a spawn token refuses any other text in its place', async () => {
  const { status } = await api.call('POST', `/token/${api.token}/spawn`, {
    headers: { authorization: `Bearer ${api.token}` },
  });
  expect(status).toBe(404);
});

function expectedFor(access: Access, caller: CallerName): string {
  if (access === 'open' || access === 'spawn-token') return 'allowed';
  const isValid = caller === 'of another account' || caller === 'with all scopes' || caller.endsWith(' alone');
  if (!isValid) return 'unauthorized';
  if (access === 'any' || caller === 'with all scopes') return 'allowed';
  if (caller === 'of another account') return 'absent';
  return access === 'own' || caller === `with the scope ${access} alone` ? 'allowed' : 'forbidden';
}

function kindOf(status: number): string {
  const kinds: Readonly<Record<number, string>> = { 401: 'unauthorized', 403: 'forbidden', 404: 'absent' };
  return kinds[status] ?? 'allowed';
}

/** The status of a request to a route, for things of `acme` that nothing else uses. */
async function statusFor(route: string, { body }: Row, authorization: string | undefined): Promise<number> {
  const [method = '', pattern = ''] = route.split(' ');
  const path = await pathOf(pattern);
  const headers = {
    accept: 'text/event-stream',
    ...(authorization !== undefined && { authorization }),
    ...(method === 'POST' && { 'content-type': 'application/json' }),
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
  const backend = (
    await api.post('/v1/user/acme/service/draw/spawn', pattern.endsWith('/fetch') ? { lock: 'held' } : {})
  ).body;
  const values: Readonly<Record<string, string>> = {
    account: 'acme',
    service: pattern.endsWith('/:service/delete') ? await newServiceName() : 'draw',
    environment: 'default',
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

let services = 0;

async function newServiceName(): Promise<string> {
  const name = `victim-${(services += 1)}`;
  await api.addService(name);
  return name;
}

/** The application with all its routes; no request can be answered. */
function appWithRoutes(): Express {
  const deps = { log: silentLog(), metrics: openMetrics() };
  return newApp(deps as unknown as Api, apiRoutes);
}

/** What Express has been told to answer, apart from preflight requests. */
function routesOf(app: Express): string[] {
  return app.router.stack
    .flatMap(({ route }) => route?.stack.map(({ method }) => `${method.toUpperCase()} ${route.path}`) ?? [])
    .filter((each, i, all) => !each.startsWith('OPTIONS ') && all.indexOf(each) === i);
}
