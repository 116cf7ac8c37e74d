import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { ContainerEnv } from '../../model/container-env.ts';
import { services } from '../../model/service.ts';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi({ sessions: 'https://*.sessions.example' })));
afterAll(async () => await api[Symbol.asyncDispose]());

const path = '/v2/service/acme/draw/settings';

const unset = {
  port: null,
  max_idle_seconds: null,
  resource_limits: null,
  readiness: null,
  security_profile: null,
  egress: null,
  url_form: null,
  env: {},
  secrets: [],
};

beforeEach(async () => {
  await api.store.update(services, 'acme/draw', ({ settings: _settings, ...rest }) => rest);
});

async function change(body: object): Promise<void> {
  expect(await api.post(path, body)).toMatchObject({ status: 200, body: { status: 'ok' } });
}

async function spawned(body?: object, at = '/v2/service/acme/draw/connect'): Promise<Backend> {
  const { backend_id, name } = (await api.post(at, body)).body;
  const backend = await api.store.get(backends, backend_id ?? name);
  if (!backend) throw new Error('Nothing was spawned');
  return backend;
}

function variablesOf(backend: Backend): Readonly<Record<string, string>> {
  const { BERTH_URL: _url, SESSION_BACKEND_URL: _same, ...own } = new ContainerEnv(api.secret).open(backend);
  return own;
}

test('every setting is shown as it was set, secrets only by name', async () => {
  expect((await api.get(path)).body).toEqual(unset);
  const limits = { memory_limit_bytes: 64 * 1024 * 1024, cpu_period_percent: 50, cpu_time_limit: 60 };
  await change({
    port: 3000,
    max_idle_seconds: 60,
    resource_limits: limits,
    readiness: { type: 'http', path: '/up' },
    security_profile: 'root-less',
    egress: ['10.0.0.0/8'],
    url_form: 'host',
    env: { MODE: 'a' },
  });
  await change({ secrets: { PASSWORD: 'hunter2', KEY: 'k' } });
  expect((await api.get(path)).body).toEqual({
    port: 3000,
    max_idle_seconds: 60,
    resource_limits: { ...limits, cpu_period: 100_000 },
    readiness: { type: 'http', path: '/up' },
    security_profile: 'root-less',
    egress: ['10.0.0.0/8'],
    url_form: 'host',
    env: { MODE: 'a' },
    secrets: ['KEY', 'PASSWORD'],
  });
  expect(JSON.stringify(await api.store.get(services, 'acme/draw'))).not.toContain('hunter2');
});

test('omitted fields stay unchanged, and null restores the default', async () => {
  await change({ security_profile: 'none', egress: 'none', readiness: { type: 'healthcheck' } });
  await change({ port: 3000, max_idle_seconds: 60, resource_limits: {}, env: { A: '1', B: '2' }, secrets: { C: '3' } });
  await change({ env: { A: null, D: '4' } });
  expect((await api.get(path)).body).toMatchObject({ port: 3000, env: { B: '2', D: '4' }, secrets: ['C'] });
  await change({});
  await change({
    port: null,
    max_idle_seconds: null,
    resource_limits: null,
    readiness: null,
    security_profile: null,
    egress: null,
    url_form: null,
    env: { B: null, D: null },
    secrets: { C: null },
  });
  expect((await api.get(path)).body).toEqual(unset);
});

test('backends get the settings', async () => {
  await change({
    port: 3000,
    max_idle_seconds: 60,
    resource_limits: { memory_limit_bytes: 64 * 1024 * 1024, cpu_time_limit: 60 },
    security_profile: 'none',
    readiness: { type: 'healthcheck' },
    egress: 'none',
    env: { MODE: 'a' },
    secrets: { PASSWORD: 'hunter2' },
  });
  const backend = await spawned();
  expect(backend).toMatchObject({
    securityProfile: 'none',
    readiness: { type: 'healthcheck' },
    egress: 'none',
    port: 3000,
    maxIdleSeconds: 60,
    limits: { memoryBytes: 64 * 1024 * 1024, cpuTimeSeconds: 60 },
  });
  expect(variablesOf(backend)).toEqual({ MODE: 'a', PASSWORD: 'hunter2' });
  expect(JSON.stringify(backend)).not.toContain('hunter2');
});

test('a connect request overrides each of them separately', async () => {
  await change({
    max_idle_seconds: 60,
    resource_limits: { memory_limit_bytes: 64 * 1024 * 1024, cpu_time_limit: 60 },
    env: { MODE: 'a', MORE: 'kept' },
    secrets: { PASSWORD: 'hunter2', KEY: 'kept' },
  });
  const env = { MODE: 'b', PASSWORD: 'mine' };
  const backend = await spawned({
    spawn: { max_idle_seconds: 90, executable: { env, resource_limits: { cpu_time_limit: 10 } } },
  });
  expect(backend).toMatchObject({ maxIdleSeconds: 90, limits: { memoryBytes: 64 * 1024 * 1024, cpuTimeSeconds: 10 } });
  expect(variablesOf(backend)).toEqual({ MODE: 'b', MORE: 'kept', PASSWORD: 'mine', KEY: 'kept' });
});

test('spawns of the older generations get them too', async () => {
  await change({ port: 3000, max_idle_seconds: 60, env: { MODE: 'a' }, secrets: { PASSWORD: 'hunter2' } });
  const v1 = await spawned({}, '/v1/user/acme/service/draw/spawn');
  expect(v1).toMatchObject({ port: 3000, maxIdleSeconds: 60 });
  expect(variablesOf(v1)).toEqual({ MODE: 'a', PASSWORD: 'hunter2', PLATFORM_SERVICE: 'draw' });
  const request = { port: 4000, grace_period_seconds: 90, env: { PASSWORD: 'mine' } };
  const earliest = await spawned(request, '/user/acme/service/draw/spawn');
  expect(earliest).toMatchObject({ port: 4000, maxIdleSeconds: 90 });
  expect(variablesOf(earliest)).toMatchObject({ MODE: 'a', PASSWORD: 'mine', PLATFORM_NAME: earliest.id });
});

test('the limits of the platform override a higher setting', async () => {
  await api.store.update(services, 'acme/draw', (service) => ({ ...service, settings: { maxIdleSeconds: 5_000 } }));
  expect((await spawned()).maxIdleSeconds).toBe(1_000);
});

test('running backends keep their settings', async () => {
  const { id } = await spawned({ key: 'kept' });
  await change({ max_idle_seconds: 60, env: { MODE: 'a' } });
  expect(await api.store.get(backends, id)).toMatchObject({ maxIdleSeconds: 300 });
});

test('a new service does not inherit the settings of a deleted one', async () => {
  await api.addService('short');
  await api.post('/v2/service/acme/short/settings', { port: 3000, secrets: { A: 'b' } });
  await api.post('/v2/service/acme/short/delete');
  await api.addService('short');
  expect((await api.get('/v2/service/acme/short/settings')).body).toEqual(unset);
});

const tooMany = Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`V${i}`, '']));

test.each([
  [{ port: 0 }, 'port'],
  [{ port: 65_536 }, 'port'],
  [{ port: '80' }, 'port'],
  [{ max_idle_seconds: 0 }, 'max_idle_seconds'],
  // Beyond the maximum of this platform, not of the schema.
  [{ max_idle_seconds: 5_000 }, 'max_idle_seconds'],
  [{ resource_limits: { memory_limit_bytes: 1 } }, 'resource_limits.memory_limit_bytes'],
  [{ resource_limits: { more: 1 } }, 'resource_limits.more'],
  [{ env: { PORT: '1' } }, 'env.PORT'],
  [{ env: { PLATFORM_URL: '1' } }, 'env.PLATFORM_URL'],
  [{ secrets: { SESSION_BACKEND_KEY: '1' } }, 'secrets.SESSION_BACKEND_KEY'],
  [{ env: { 'a=b': '1' } }, 'env.a=b'],
  [{ env: { A: 1 } }, 'env.A'],
  [{ env: tooMany }, 'env'],
  [{ secrets: tooMany }, 'secrets'],
  [{ env: { A: 'x'.repeat(64 * 1024) } }, 'env'],
  [{ url_form: 'port' }, 'url_form'],
  [{ capabilities: [] }, 'capabilities'],
  [{ security_profile: 'privileged' }, 'security_profile'],
  [{ readiness: { type: 'luck' } }, 'readiness.type'],
  [{ readiness: { type: 'http' } }, 'readiness.path'],
  [{ readiness: { type: 'http', path: 'up' } }, 'readiness.path'],
  [{ readiness: { type: 'http', path: '/a\r\nb: c' } }, 'readiness.path'],
  [{ readiness: { type: 'http', path: '/a#b' } }, 'readiness.path'],
  [{ readiness: { type: 'port', path: '/' } }, 'readiness.path'],
  [{ resource_limits: { memory_limit_bytes: 16 * 1024 ** 3 + 1 } }, 'resource_limits.memory_limit_bytes'],
  [{ egress: 'closed' }, 'egress'],
  [{ egress: [] }, 'egress'],
  [{ egress: ['10.0.0.1'] }, 'egress.0'],
  [{ egress: ['fd00::/8'] }, 'egress.0'],
])('%j is rejected and changes nothing', async (body, field) => {
  const { status, body: answer } = await api.post(path, body);
  expect([status, answer.error.code]).toEqual([400, 'BadRequest']);
  expect(answer.error.message).toContain(`${field}:`);
  expect((await api.get(path)).body).toEqual(unset);
});

test('the limit of variables applies to the sum of several changes', async () => {
  const half = (letter: string) => Object.fromEntries(Array.from({ length: 130 }, (_, i) => [`${letter}${i}`, '']));
  await change({ env: half('A') });
  expect((await api.post(path, { env: half('B') })).body.error.message).toContain('env:');
});

test('reading and changing them needs the scope in their account', async () => {
  const reader = await api.tokenFor('acme', ['read']);
  const other = await api.tokenFor('other', ['read', 'manage']);
  expect((await api.get(path, reader)).status).toBe(200);
  expect((await api.post(path, { port: 1 }, reader)).body.error.code).toBe('Forbidden');
  expect((await api.get(path, other)).body.error.code).toBe('ServiceNotFound');
  expect((await api.post(path, { port: 1 }, other)).body.error.code).toBe('ServiceNotFound');
});
