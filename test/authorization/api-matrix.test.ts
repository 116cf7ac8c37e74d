// Takes about 15 s
/** Every route of the API × every kind of caller. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addAdmin, addUser, logIn, ownPage } from '../../api/testing/people.ts';
import { digestOf, openTestApi } from '../../api/testing/test-api.ts';
import type { TestApi } from '../../api/testing/test-api.ts';
import { scopes } from '../../contract/scopes.ts';
import type { Scope } from '../../contract/scopes.ts';
import { accessTokens, hashToken, newSecret } from '../../model/access-token.ts';
import type { AccessToken } from '../../model/access-token.ts';
import { setMember } from '../../model/members.ts';
import { bearers, newToken, people, table } from './api-rows.ts';
import type { Access, CallerName, Kind, Row } from './api-rows.ts';

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
  setBearer('with a token that was never issued', newSecret('access'));
  setBearer('with an expired token', await changed({ expiresAt: new Date(Date.now() - 1) }));
  setBearer('with a revoked token', await changed({ revokedAt: new Date() }));
  setBearer('of another account', await api.tokenFor('other', scopes));
  setBearer('limited to another service', await changed({ services: ['other'] }));
  setBearer('limited to the service', await changed({ services: ['draw', ...deletableServices] }));
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
  '%s returns the same status with any access token as without',
  async (route) => {
    const without = await statusFor(route, rowOf(route), 'without a token');
    const statuses = new Set<number>();
    for (const caller of bearers) statuses.add(await statusFor(route, rowOf(route), caller));
    statuses.delete(tooMany);
    expect([...statuses]).toEqual(without === tooMany ? [] : [without]);
  },
);

test('a route that needs a spawn token rejects any other text in its place', async () => {
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
  // A token that is limited to services cannot access resources of the whole account. Lists contain the items of its services.
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

/** Lists that contain, for a token that is limited to services, the items of these services. */
function isList(route: string): boolean {
  return route.startsWith('GET ') && /\/:account\/(?:services|backends)$/.test(route);
}

/** The scopes of a valid caller of the account, for rows that require a scope or an owner. */
function scopesOf(caller: CallerName, access: Access): readonly Scope[] {
  if (caller === 'a viewer') return ['read'];
  if (caller === 'a member' && access === 'owner') return [];
  return scopes.filter((scope) => !caller.endsWith(' alone') || caller === `with the scope ${scope} alone`);
}

function kindOf(status: number): Kind {
  const kinds: Readonly<Record<number, Kind>> = { 401: 'unauthorized', 403: 'forbidden', 404: 'absent' };
  return kinds[status] ?? 'allowed';
}

/** The status of a request to a route, for resources of `acme` that no other request uses. */
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
  if (answer.status === 500) throw new Error(`${answer.status} from ${route} ${caller}`);
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
const deletableServices = Array.from({ length: 32 }, (_, i) => `deletable-${i}`);
let usedServices = 0;

async function newServiceName(): Promise<string> {
  const name = deletableServices[usedServices++] ?? '';
  await api.addService(name);
  return name;
}
