import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashToken } from '../../model/access-token.ts';
import { backends } from '../../model/backend.ts';
import { ContainerEnv } from '../../model/container-env.ts';
import { services } from '../../model/service.ts';
import { spawnTokens } from '../../model/spawn-token.ts';
import { becomeServing, openTestApi } from '../testing/test-api.ts';
import type { Reply, TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

const createPath = '/user/acme/service/draw/token';

async function newToken(options?: object): Promise<string> {
  const { status, body } = await api.post(createPath, options);
  expect([status, Object.keys(body)]).toEqual([200, ['token']]);
  return body.token;
}

/** Spawns without any authorization, as a page of another origin would. */
async function spawnWith(token: string, body?: object): Promise<Reply> {
  const headers = { 'content-type': 'application/json', origin: 'https://elsewhere.example' };
  return await api.call('POST', `/token/${token}/spawn`, { headers, ...(body && { body: JSON.stringify(body) }) });
}

async function revoke(token: string, as = api.token): Promise<Reply> {
  return await api.call('DELETE', `/token/${token}`, { headers: { authorization: `Bearer ${as}` } });
}

async function variablesOf(name: string): Promise<object> {
  const backend = await api.store.get(backends, name);
  return backend ? new ContainerEnv(api.secret).open(backend) : {};
}

test('a spawn token spawns with its options, and every origin may use it', async () => {
  const token = await newToken({
    grace_period_seconds: 30,
    port: 3000,
    require_bearer_token: true,
    env: { MODE: 'a' },
  });
  const { status, headers, body } = await spawnWith(token, { env: { PLATFORM_ROOM: 'red' } });
  expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*']);
  expect(body).toEqual({
    name: expect.any(String),
    url: expect.any(String),
    ready_url: expect.any(String),
    status_url: `${api.base}/backend/${body.name}/status`,
    status: 'Loading',
    spawned: true,
    bearer_token: expect.any(String),
  });
  expect(await api.store.get(backends, body.name)).toMatchObject({ maxIdleSeconds: 30, port: 3000, account: 'acme' });
  expect(await variablesOf(body.name)).toMatchObject({ MODE: 'a', PLATFORM_ROOM: 'red', PLATFORM_NAME: body.name });
  const preflight = await api.call('OPTIONS', `/token/${token}/spawn`);
  expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([204, '*']);
});

test('the body of a spawn may be missing', async () => {
  const token = await newToken();
  expect((await spawnWith(token)).body.spawned).toBe(true);
  expect((await api.call('POST', `/token/${token}/spawn`)).body.spawned).toBe(true);
});

test('only variables that begin with PLATFORM_ can be passed, and they do not override those of the owner and the platform', async () => {
  const token = await newToken({ env: { PLATFORM_ROOM: 'fixed' } });
  for (const name of ['LD_PRELOAD', 'PATH', 'platform_room', 'SESSION_BACKEND_ID', 'PORT', ' PLATFORM_X']) {
    const { status, body } = await spawnWith(token, { env: { [name]: 'x' } });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(`env.${name}:`)]);
  }
  const { body } = await spawnWith(token, { env: { PLATFORM_ROOM: 'forged', PLATFORM_SERVICE: 'x', PLATFORM_A: 'a' } });
  expect(await variablesOf(body.name)).toEqual({
    PLATFORM_ROOM: 'fixed',
    PLATFORM_A: 'a',
    PLATFORM_NAME: body.name,
    PLATFORM_SERVICE: 'draw',
    PLATFORM_URL: body.url,
  });
});

test.each([
  { tag: 'latest' },
  { port: 1 },
  { lock: 'a' },
  { grace_period_seconds: 1 },
  { require_bearer_token: false },
])('a spawn cannot change the option %j of its token', async (body) => {
  expect((await spawnWith(await newToken(), body)).status).toBe(400);
});

test('a token with a lock returns the backend that holds it', async () => {
  const token = await newToken({ lock: 'shared' });
  const first = (await spawnWith(token)).body;
  await api.change(first.name, becomeServing);
  expect((await spawnWith(token)).body).toMatchObject({ name: first.name, url: first.url, spawned: false });
});

test('a revoked token is rejected at once', async () => {
  const token = await newToken();
  expect((await revoke(token)).body).toEqual({ status: 'ok' });
  const { status, body } = await spawnWith(token);
  expect([status, body.error.code]).toEqual([404, 'SpawnTokenNotFound']);
  expect(JSON.stringify(body)).not.toContain(token);
  expect((await revoke(token)).body.error.code).toBe('SpawnTokenNotFound');
});

test('creating and revoking a token needs the scope in its account', async () => {
  const token = await newToken();
  const weak = await api.tokenFor('acme', ['read', 'connect', 'push', 'deploy']);
  const other = await api.tokenFor('other', ['manage']);
  expect((await api.post(createPath, {}, weak)).body.error.code).toBe('Forbidden');
  expect((await api.post(createPath, {}, other)).body.error.code).toBe('ServiceNotFound');
  expect((await revoke(token, weak)).body.error.code).toBe('Forbidden');
  expect((await revoke(token, other)).body.error.code).toBe('SpawnTokenNotFound');
  expect((await revoke(token, 'guessed')).status).toBe(401);
  expect((await spawnWith(token)).status).toBe(200);
});

test.each(['guessed', `berth_spawn_${'a'.repeat(43)}`, 'berth_spawn_', '%00', 'a%2Fb'])(
  'the token %j does not exist',
  async (token) => {
    expect((await spawnWith(token)).body.error.code).toBe('SpawnTokenNotFound');
  },
);

test('a token that does not exist is rejected before the body is read', async () => {
  const body = JSON.stringify({ env: { PLATFORM_A: 'x'.repeat(2 * 1024 * 1024) } });
  const headers = { 'content-type': 'application/json' };
  expect((await api.call('POST', '/token/guessed/spawn', { headers, body })).status).toBe(404);
});

test('neither the token nor its variables are readable in the store', async () => {
  const token = await newToken({ env: { PASSWORD: 'hunter2' } });
  const stored = JSON.stringify(await api.store.get(spawnTokens, hashToken(token)));
  expect(stored).toContain('acme');
  expect(stored).not.toContain('hunter2');
  expect(stored).not.toContain(token);
});

test.each([
  [{ service_environment: 'nope' }, 'EnvironmentNotFound'],
  [{ port: 0 }, 'BadRequest'],
  [{ user: 'ada' }, 'BadRequest'],
])('the creation of a token with the options %j is rejected', async (options, code) => {
  expect((await api.post(createPath, options)).body.error.code).toBe(code);
});

test('a spawn token of a deleted service does not spawn backends of a new one with its name', async () => {
  const token = await newToken();
  const { createdAt = new Date() } = (await api.store.get(spawnTokens, hashToken(token))) ?? {};
  // As after a deletion and a creation, before the next pass over deleted services.
  const clearBefore = new Date(createdAt.getTime() + 1);
  await api.store.update(services, 'acme/draw', (service) => ({ ...service, clearBefore }));
  expect((await spawnWith(token)).body.error.code).toBe('SpawnTokenNotFound');
});
