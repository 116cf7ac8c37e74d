import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { ContainerEnv } from '../../model/container-env.ts';
import { hashToken } from '../../model/access-token.ts';
import { routeId, routes } from '../../model/route.ts';
import { becomeServing, digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  await api.addImage('acme/draw', 'older', digestOf('b'));
});
afterAll(async () => await api[Symbol.asyncDispose]());

const forms = [
  { form: 'v1', prefix: '/v1' },
  { form: 'the earliest form', prefix: '' },
] as const;

const spawnPath = (prefix: string) => `${prefix}/user/acme/service/draw/spawn`;

async function backendOf(name: string): Promise<Backend> {
  const backend = await api.store.get(backends, name);
  if (!backend) throw new Error(`No backend ${name}`);
  return backend;
}

/** The variables that the container of a backend gets. */
async function variablesOf(name: string): Promise<Readonly<Record<string, string>>> {
  return new ContainerEnv(api.secret).open(await backendOf(name));
}

describe.each(forms)('$form', ({ prefix }) => {
  test('spawns a backend that v2 also finds, shows its state and stops it', async () => {
    const { status, headers, body } = await api.post(spawnPath(prefix));
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(body).toEqual({
      name: expect.stringMatching(/^[a-z0-9]{18}$/),
      url: expect.stringMatching(/^https:\/\/sessions\.example\/[\w-]{43}\/$/),
      ready_url: expect.any(String),
      status_url: `${api.base}${prefix}/backend/${body.name}/status`,
      status: 'Loading',
      spawned: true,
    });
    const token = body.url.split('/').at(-2);
    expect(body.ready_url).toBe(`${api.base}/ready/${body.name}/${token}/`);
    expect((await api.call('GET', `/v2/backend/${body.name}/status`)).body.status).toBe('scheduled');

    const stateUrl = `${prefix}/backend/${body.name}/status`;
    const shown = await api.call('GET', stateUrl);
    expect(shown.body).toEqual({ state: 'Loading', time: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) });
    expect(shown.headers.get('access-control-allow-origin')).toBe('*');
    expect((await api.post(`${prefix}/backend/${body.name}/terminate`)).body).toEqual({ status: 'ok' });
    expect((await api.call('GET', stateUrl)).body.state).toBe('Terminated');
    const again = await api.post(`${prefix}/backend/${body.name}/terminate`);
    expect([again.status, again.body.error.code]).toEqual([409, 'BackendNotRunning']);
  });

  test('applies tag, grace period, lock and variables', async () => {
    const { body } = await api.post(spawnPath(prefix), {
      tag: 'older',
      grace_period_seconds: 60,
      lock: `room ${prefix}`,
      env: { COLOUR: 'red' },
    });
    const backend = await backendOf(body.name);
    expect(backend).toMatchObject({
      imageDigest: digestOf('b'),
      maxIdleSeconds: 60,
      key: `room ${prefix}`,
    });
    expect(await variablesOf(body.name)).toMatchObject({ COLOUR: 'red', PLATFORM_SERVICE: 'draw' });
    expect((await api.get(`/v2/backend/${body.name}`)).body.key).toBe(`room ${prefix}`);
  });

  test('a lock that is held returns its holder, whichever generation spawned it', async () => {
    const lock = `shared ${prefix}`;
    const first = (await api.post('/v2/service/acme/draw/connect', { key: lock })).body;
    await api.change(first.backend_id, becomeServing);
    const joined = (await api.post(spawnPath(prefix), { lock })).body;
    expect(joined).toMatchObject({ name: first.backend_id, spawned: false, status: 'Ready' });
    const fetched = await api.post(`${prefix}/user/acme/service/draw/fetch`, { lock });
    expect([fetched.status, fetched.body]).toEqual([200, joined]);
    expect((await api.post('/v2/service/acme/draw/connect', { key: lock })).body.backend_id).toBe(joined.name);
  });

  test('fetch needs a lock that is held', async () => {
    const path = `${prefix}/user/acme/service/draw/fetch`;
    const free = await api.post(path, { lock: 'free' });
    expect([free.status, free.body.error.code]).toEqual([404, 'KeyNotHeld']);
    const missing = await api.post(path, {});
    expect([missing.status, missing.body.error.message]).toEqual([400, expect.stringContaining('lock')]);
  });

  test.each([
    [{ grace_period_seconds: 0 }, 'grace_period_seconds'],
    [{ grace_period_seconds: 1.5 }, 'grace_period_seconds'],
    // Beyond the maximum of this platform, not of the schema.
    [{ grace_period_seconds: 5000 }, 'grace_period_seconds'],
    [{ lock: 'x'.repeat(129) }, 'lock'],
    [{ lock: 1 }, 'lock'],
    [{ tag: 'no tag' }, 'tag'],
    [{ env: { COUNT: 1 } }, 'env.COUNT'],
    [{ key: 'room' }, 'key'],
    [{ service_environment: '../x' }, 'service_environment'],
  ])('rejects %j and names the field', async (request, field) => {
    const { status, body } = await api.post(spawnPath(prefix), request);
    expect([status, body.error.code]).toEqual([400, 'BadRequest']);
    expect(body.error.message).toContain(`${field}:`);
  });

  test('spawns in an environment', async () => {
    const unknown = await api.post(spawnPath(prefix), { service_environment: 'nope' });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'EnvironmentNotFound']);
    const { body } = await api.post(spawnPath(prefix), { service_environment: 'default' });
    expect((await backendOf(body.name)).environment).toBe('default');
  });

  test('a service of another account, or none, is not found', async () => {
    const other = await api.tokenFor('other', ['connect', 'read', 'manage']);
    for (const path of [spawnPath(prefix), `${prefix}/user/acme/service/draw/fetch`]) {
      expect((await api.post(path, { lock: 'a' }, other)).body.error.code).toBe('ServiceNotFound');
      expect((await api.post(path.replace('draw', 'nope'), { lock: 'a' })).body.error.code).toBe('ServiceNotFound');
    }
    const { name } = (await api.post(spawnPath(prefix))).body;
    expect((await api.post(`${prefix}/backend/${name}/terminate`, undefined, other)).body.error.code).toBe(
      'BackendNotFound',
    );
  });

  test('creates and lists services', async () => {
    const name = prefix === '' ? 'board' : 'board-v1';
    expect((await api.post(`${prefix}/user/acme/service`, { name })).body).toEqual({ status: 'ok' });
    expect((await api.post(`${prefix}/user/acme/service`, { name })).body.error.code).toBe('ServiceExists');
    expect((await api.get(`${prefix}/user/acme/services`)).body.services).toContain(name);
    expect((await api.get('/v2/account/acme/services')).body.services).toContain(name);
  });

  test('auth accepts every valid token, and rejects others', async () => {
    const pusher = await api.tokenFor('acme', ['push']);
    const valid = await api.get(`${prefix}/auth`, pusher);
    expect([valid.status, valid.body.status]).toEqual([200, 'ok']);
    expect((await api.get(`${prefix}/auth`, 'berth_pat_guessed')).status).toBe(401);
    expect((await api.call('GET', `${prefix}/auth`)).status).toBe(401);
  });

  test('the readiness page needs only the name, and leads to the URL of the spawn', async () => {
    const { name, url } = (await api.post(spawnPath(prefix))).body;
    const path = `${prefix}/backend/${name}/ready`;
    const waiting = await api.call('GET', path);
    expect([waiting.status, waiting.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(waiting.body).toContain(url);
    await api.change(name, becomeServing);
    const ready = await api.call('GET', path);
    expect([ready.status, ready.headers.get('location')]).toEqual([303, url]);
    const { backend_id: id } = (await api.post('/v2/service/acme/draw/connect')).body;
    expect((await api.call('GET', `${prefix}/backend/${id}/ready`)).status).toBe(404);
    expect((await api.call('GET', `${prefix}/backend/nope/ready`)).status).toBe(404);
  });
});

describe('variables that the platform sets', () => {
  const forged = { PORT: '1', PLATFORM_SERVICE: 'forged' };

  test.each(['PORT', 'SESSION_BACKEND_ID', 'SESSION_BACKEND_KEY', 'SESSION_BACKEND_FENCING_TOKEN', 'PLATFORM_SERVICE'])(
    'v1 rejects %s by name',
    async (name) => {
      const { status, body } = await api.post(spawnPath('/v1'), { env: { [name]: 'x' } });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining(`env.${name}`)]);
    },
  );

  test('v1 accepts variables that only the earliest form reserves', async () => {
    const { body } = await api.post(spawnPath('/v1'), { env: { PLATFORM_NAME: 'mine' } });
    expect(await variablesOf(body.name)).toEqual({ PLATFORM_NAME: 'mine', PLATFORM_SERVICE: 'draw' });
  });

  test('the earliest form overrides them, and adds its own', async () => {
    const env = { ...forged, PLATFORM_NAME: 'forged', PLATFORM_URL: 'forged', MORE: 'mine' };
    const { status, body } = await api.post(spawnPath(''), { env });
    expect(status).toBe(200);
    expect(await variablesOf(body.name)).toEqual({
      PORT: '1', // The worker overrides it.
      PLATFORM_NAME: body.name,
      PLATFORM_SERVICE: 'draw',
      PLATFORM_URL: body.url,
      MORE: 'mine',
    });
  });

  test('v2 sets none of them', async () => {
    const { backend_id: id } = (await api.post('/v2/service/acme/draw/connect')).body;
    expect(await variablesOf(id)).toEqual({});
  });

  test('the store contains only a hash of the token in the URL', async () => {
    const { name, url } = (await api.post(spawnPath(''))).body;
    const token = url.split('/').at(-2);
    expect(JSON.stringify(await backendOf(name))).not.toContain(token);
    expect(await api.store.get(routes, routeId(token))).toMatchObject({ backend: name });
  });
});

describe('the earliest form only', () => {
  test('another port', async () => {
    expect((await backendOf((await api.post(spawnPath(''), { port: 3000 })).body.name)).port).toBe(3000);
    for (const port of [0, 65_536, 1.5, '80']) {
      const { status, body } = await api.post(spawnPath(''), { port });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining('port:')]);
    }
    expect((await api.post(spawnPath('/v1'), { port: 3000 })).status).toBe(400);
  });

  test('a bearer token, whose hash the backend and every route to it have', async () => {
    const { body } = await api.post(spawnPath(''), { require_bearer_token: true, lock: 'guarded' });
    expect(body.bearer_token).toMatch(/^[\w-]{43}$/);
    const hash = hashToken(body.bearer_token);
    expect((await backendOf(body.name)).bearerHash).toBe(hash);
    await api.change(body.name, becomeServing);
    const fromV1 = (await api.post(spawnPath('/v1'), { lock: 'guarded' })).body;
    const fromV2 = (await api.post('/v2/service/acme/draw/connect', { key: 'guarded', user: 'ada' })).body;
    expect([fromV1.bearer_token, fromV2.bearer_token]).toEqual([body.bearer_token, body.bearer_token]);
    for (const { url } of [body, fromV1, fromV2]) {
      expect((await api.store.get(routes, routeId(url.split('/').at(-2))))?.bearerHash).toBe(hash);
    }
    expect((await api.post(spawnPath(''), { require_bearer_token: false })).body).not.toHaveProperty('bearer_token');
  });

  test('the name of an image', async () => {
    const { body } = await api.get('/user/acme/service/draw/image');
    expect(body).toEqual({ imageName: 'registry.example/acme/draw' });
    expect((await api.get('/user/acme/service/nope/image')).body.error.code).toBe('ServiceNotFound');
  });
});
