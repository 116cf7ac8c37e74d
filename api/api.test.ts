import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { spawnJob } from '../contract/jobs.ts';
import { backendChanged } from '../contract/messages.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import { listen, newServer } from '../core/http/listener.ts';
import { silentLog } from '../core/log/log.ts';
import { openMetrics } from '../core/metrics/metrics.ts';
import { openInProcessQueue } from '../core/queue/in-process.ts';
import { JobHandlers } from '../core/queue/queue.ts';
import { PlatformSecret } from '../core/secret/platform-secret.ts';
import { openSqliteStore } from '../core/store/sqlite.ts';
import type { Store } from '../core/store/store.ts';
import { accessTokenDocument, accessTokens, hashToken, newAccessToken } from '../model/access-token.ts';
import type { AccessRight } from '../model/access-token.ts';
import { advance, assign, backends, becomeReady, beginStop, end } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { modelCollections } from '../model/collections.ts';
import { imageId, images } from '../model/image.ts';
import { keyId, keys } from '../model/key.ts';
import { openApi } from './index.ts';
import { spawnRules } from './testing/spawn-rules.ts';

const log = silentLog();
const closing = new AsyncDisposableStack();
const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const nudged: string[] = [];
const bus = openInProcessBus({ log });
let store: Store;
let base: string;
let token: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-api-'));
  closing.defer(() => rm(folder, { recursive: true }));
  store = closing.use(await openSqliteStore({ folder, collections: [...modelCollections], log }));
  const queue = closing.use(openInProcessQueue({ clock: systemClock, log }));
  const handlers = new JobHandlers().on(spawnJob, async ({ backend }) => void nudged.push(backend));
  closing.use(await queue.consume('cluster-main', handlers, { concurrency: 1 }));
  const server = newServer();
  const { port } = closing.use(await listen(server, { host: '127.0.0.1', port: 0, drainMs: 100 }));
  base = `http://127.0.0.1:${port}`;
  const room = await openApi({
    archives: undefined,
    store,
    queue,
    bus,
    clock: systemClock,
    log,
    metrics: openMetrics(),
    urls: { api: base, proxy: 'https://sessions.example', registryHost: 'registry.example' },
    rules: { ...spawnRules, fetchesAhead: true },
    secret: new PlatformSecret(Buffer.alloc(32, 1)),
    secretFor: (connectionToken) => `secret of ${connectionToken}`,
  });
  closing.use(room);
  server.on('request', room.handle);
  token = await tokenFor('acme', ['read', 'push', 'connect', 'manage']);
  await post('/v2/account/acme/service', { name: 'draw' });
  await pushImage('latest', digest('a'));
});

afterAll(() => closing.disposeAsync());

async function tokenFor(account: string, rights: AccessRight[]): Promise<string> {
  const made = newAccessToken();
  await store.insert(accessTokens, accessTokenDocument(made, { account, name: 'test', rights }, new Date()));
  return made;
}

async function pushImage(tag: string, imageDigest: string): Promise<void> {
  const repository = 'acme/draw';
  const id = imageId(repository, tag, imageDigest);
  await store.insert(images, { id, repository, tag, digest: imageDigest, uploadTime: new Date(), sizeBytes: 1 });
}

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a client sees has no type
  readonly body: any;
}

async function call(method: string, path: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(base + path, { method, redirect: 'manual', ...init });
  const text = await response.text();
  const isJson = response.headers.get('content-type') === 'application/json';
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

async function get(path: string, as = token): Promise<Reply> {
  return await call('GET', path, { headers: { authorization: `Bearer ${as}` } });
}

async function post(path: string, body?: unknown, as = token): Promise<Reply> {
  const headers = { authorization: `Bearer ${as}`, 'content-type': 'application/json' };
  return await call('POST', path, { headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

const connectPath = '/v2/service/acme/draw/connect';

async function change(id: string, by: (backend: Backend) => Backend): Promise<void> {
  const changed = await store.update(backends, id, by);
  if (changed) await bus.publish(backendChanged, { backend: id, status: changed.status });
}

const becomeServing = (backend: Backend) =>
  becomeReady(advance(assign(backend, 'node-1'), 'waiting', new Date()), { host: '127.0.0.1', port: 1 }, new Date());

describe('connect', () => {
  test('without a key spawns a backend and nudges the cluster', async () => {
    const { status, headers, body } = await post(connectPath);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json');
    expect(body).toEqual({
      backend_id: expect.stringMatching(/^[a-z0-9]{12}$/),
      url: `https://sessions.example/${body.token}/`,
      token: expect.stringMatching(/^[\w-]{43}$/),
      secret_token: `secret of ${body.token}`,
      ready_url: `${base}/ready/${body.backend_id}/${body.token}/`,
      status_url: `${base}/v2/backend/${body.backend_id}/status`,
      status: 'scheduled',
      spawned: true,
    });
    await expect.poll(() => nudged).toContain(body.backend_id);
  });

  test('with a key that is held returns its backend, with a token of its own', async () => {
    const first = await post(connectPath, { key: 'held' });
    const second = await post(connectPath, { key: 'held' });
    expect([first.body.spawned, second.body.spawned]).toEqual([true, false]);
    expect(second.body.backend_id).toBe(first.body.backend_id);
    expect(second.body.token).not.toBe(first.body.token);
  });

  test('50 at a time on one key spawn one backend', async () => {
    const replies = await Promise.all(Array.from({ length: 50 }, () => post(connectPath, { key: 'crowd' })));
    expect(new Set(replies.map(({ body }) => body.backend_id)).size).toBe(1);
    expect(replies.filter(({ body }) => body.spawned)).toHaveLength(1);
  });

  test('keys of two services are two keys', async () => {
    await post('/v2/account/acme/service', { name: 'other' });
    const id = imageId('acme/other', 'latest', digest('b'));
    await store.insert(images, {
      id,
      repository: 'acme/other',
      tag: 'latest',
      digest: digest('b'),
      uploadTime: new Date(),
      sizeBytes: 1,
    });
    const [here, there] = await Promise.all([
      post(connectPath, { key: 'same' }),
      post('/v2/service/acme/other/connect', { key: 'same' }),
    ]);
    expect([here.body.spawned, there.body.spawned]).toEqual([true, true]);
  });

  test('spawn: false finds a holder or says that there is none', async () => {
    const nobody = await post(connectPath, { key: 'nobody', spawn: false });
    expect([nobody.status, nobody.body.error.code]).toEqual([404, 'KeyNotHeld']);
    await post(connectPath, { key: 'somebody' });
    const somebody = await post(connectPath, { key: 'somebody', spawn: false });
    expect([somebody.status, somebody.body.spawned]).toEqual([200, false]);
    expect((await post(connectPath, { spawn: false })).status).toBe(400);
  });

  test('after the holder has ended spawns anew, with a higher fencing token', async () => {
    const first = await post(connectPath, { key: 'again' });
    await change(first.body.backend_id, (current) =>
      end(current, { kind: null, reason: null, exitCode: 0 }, new Date()),
    );
    const second = await post(connectPath, { key: 'again' });
    expect(second.body.spawned).toBe(true);
    const [before, after] = await Promise.all([first, second].map(({ body }) => store.get(backends, body.backend_id)));
    expect(after?.fencingToken).toBeGreaterThan(before?.fencingToken ?? Infinity);
  });

  test('while the holder is ending spawns a successor that waits for it, also through one that never started', async () => {
    const first = (await post(connectPath, { key: 'heir' })).body.backend_id as string;
    await change(first, becomeServing);
    await post(`/v2/backend/${first}/terminate`);
    const second = (await post(connectPath, { key: 'heir' })).body.backend_id as string;
    expect((await store.get(backends, second))?.waitsFor).toBe(first);
    await post(`/v2/backend/${second}/terminate`);
    const third = await post(connectPath, { key: 'heir' });
    expect((await store.get(backends, third.body.backend_id))?.waitsFor).toBe(first);
  });

  test('a holder whose node has not renewed its lease is lost, and the key is given out again', async () => {
    const first = (await post(connectPath, { key: 'lapsed' })).body.backend_id as string;
    await change(first, becomeServing);
    const past = new Date(Date.now() - 1);
    await store.update(keys, keyId('acme', 'draw', 'lapsed'), (key) => ({ ...key, leaseUntil: past }));
    const second = await post(connectPath, { key: 'lapsed' });
    expect(second.body.spawned).toBe(true);
    expect((await get(`/v2/backend/${first}`)).body.statuses.at(-1)).toMatchObject({
      status: 'terminated',
      last_status: 'ready',
      termination_reason: 'lost',
      terminatation_reason: 'lost',
    });
  });

  test('takes what a spawn config says', async () => {
    const { body } = await post(connectPath, {
      user: 'Zoë',
      auth: { role: 'ädmin' },
      spawn: {
        tag: digest('a'),
        max_idle_seconds: 7,
        lifetime_limit_seconds: 70,
        executable: {
          env: { GREETING: 'hello' },
          resource_limits: { memory_limit_bytes: 64 << 20, cpu_period_percent: 50, cpu_time_limit: 9 },
        },
      },
    });
    expect(await store.get(backends, body.backend_id)).toMatchObject({
      maxIdleSeconds: 7,
      lifetimeLimitSeconds: 70,
      imageDigest: digest('a'),
      env: { GREETING: 'hello' },
      limits: { memoryBytes: 64 << 20, cpuPeriodPercent: 50, cpuPeriodMicroseconds: 100_000, cpuTimeSeconds: 9 },
    });
  });

  test.each([
    ['an unknown field', { spwan: {} }, 'spwan: There is no such field'],
    [
      'an unknown nested field',
      { spawn: { executable: { privileged: true } } },
      'spawn.executable.privileged: There is no such field',
    ],
    ['an empty key', { key: '' }, 'key: Empty'],
    ['a key of 129 characters', { key: '🚢'.repeat(129) }, 'key: Too long'],
    ['a key with a control character', { key: 'a\u0007b' }, 'key: Control'],
    ['a lone surrogate', { key: '\ud800' }, 'key: Not well-formed'],
    ['a fraction of a second', { spawn: { max_idle_seconds: 1.5 } }, 'spawn.max_idle_seconds'],
    ['a negative time', { spawn: { lifetime_limit_seconds: -1 } }, 'spawn.lifetime_limit_seconds'],
    ['more than the platform allows', { spawn: { max_idle_seconds: 1001 } }, 'spawn.max_idle_seconds: At most 1000'],
    ['a reserved variable', { spawn: { executable: { env: { PORT: '1' } } } }, 'spawn.executable.env.PORT'],
    ['a variable that is no text', { spawn: { executable: { env: { A: 1 } } } }, 'spawn.executable.env.A'],
    ['a user with a line break', { user: 'a\r\nx-verified-secret: b' }, 'user: Control'],
    ['a user that is too long', { user: 'ü'.repeat(513) }, 'user: Too long'],
    ['auth that is too large', { auth: { a: 'x'.repeat(9000) } }, 'auth: Too large'],
    ['auth that is no object', { auth: ['a'] }, 'auth'],
    ['a list for a body', [1], 'The body'],
  ])('refuses %s, and names it', async (_what, body, message) => {
    const { status, body: answer } = await post(connectPath, body);
    expect([status, answer.error.code]).toEqual([400, 'BadRequest']);
    expect(answer.error.message).toContain(message);
  });

  test('accepts a key of 128 characters of any language', async () => {
    expect((await post(connectPath, { key: '🚢'.repeat(128) })).status).toBe(200);
  });

  test.each([
    ['unknown tag', connectPath, { spawn: { tag: 'nope' } }, 404, 'ImageNotFound'],
    ['unknown digest', connectPath, { spawn: { tag: digest('f') } }, 404, 'ImageNotFound'],
    ['unknown service', '/v2/service/acme/nope/connect', {}, 404, 'ServiceNotFound'],
    ['unknown environment', '/v2/service/acme/draw/nope/connect', {}, 404, 'EnvironmentNotFound'],
    ['another account', '/v2/service/other/draw/connect', {}, 404, 'ServiceNotFound'],
    ['mounts where there are none', connectPath, { spawn: { executable: { mount: true } } }, 409, 'MountsDisabled'],
  ])('%s', async (_what, path, body, status, code) => {
    const reply = await post(path, body);
    expect([reply.status, reply.body.error.code]).toEqual([status, code]);
  });

  test('a service without images says where to push one', async () => {
    await post('/v2/account/acme/service', { name: 'empty' });
    const { status, body } = await post('/v2/service/acme/empty/connect');
    expect([status, body.error.code]).toEqual([409, 'NoImage']);
    expect(body.error.message).toContain('registry.example/acme/empty');
  });
});

describe('bodies', () => {
  const send = async (body: string | Uint8Array<ArrayBuffer>, type = 'application/json') =>
    await call('POST', connectPath, { body, headers: { authorization: `Bearer ${token}`, 'content-type': type } });

  test.each([
    ['not JSON', '{"key":', 400],
    ['cut in the middle of a character', Buffer.from('{"key":"é"}').subarray(0, 9), 400],
    [
      'invalid UTF-8 inside a text',
      Buffer.from([0x7b, 0x22, 0x6b, 0x65, 0x79, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
      400,
    ],
    ['nested deeper than anybody needs', `{"auth":{"a":${'['.repeat(200)}${']'.repeat(200)}}}`, 400],
    ['larger than 1 MiB', `{"user":"${'x'.repeat(1 << 20)}"}`, 413],
  ])('%s', async (_what, body, status) => {
    expect((await send(body)).status).toBe(status);
  });

  test('of another type are refused', async () => {
    const { status, body } = await send('{}', 'text/plain');
    expect([status, body.error.code]).toEqual([415, 'UnsupportedMediaType']);
  });

  test('may be missing where every field is optional, with and without a content type', async () => {
    const bare = await call('POST', connectPath, { headers: { authorization: `Bearer ${token}` } });
    expect([bare.status, (await send('')).status]).toEqual([200, 200]);
  });
});

describe('access', () => {
  test('a missing, malformed, unknown or revoked token is 401 with a challenge', async () => {
    const unknown = newAccessToken();
    const revoked = await tokenFor('acme', ['connect']);
    await store.update(accessTokens, hashToken(revoked), (current) => ({ ...current, revokedAt: new Date() }));
    for (const authorization of ['', 'Basic eDp5', 'Bearer x', `Bearer ${unknown}`, `Bearer ${revoked}`]) {
      const { status, headers, body } = await call('POST', connectPath, { headers: { authorization } });
      expect([status, body.error.code, headers.get('www-authenticate')]).toEqual([401, 'Unauthorized', 'Bearer']);
      expect(body.error).toEqual({
        code: 'Unauthorized',
        message: expect.any(String),
        status: 401,
        id: headers.get('x-request-id'),
      });
    }
  });

  test('a token without the right is 403', async () => {
    const reader = await tokenFor('acme', ['read']);
    expect((await post(connectPath, {}, reader)).status).toBe(403);
    expect((await post('/v2/account/acme/service', { name: 'x' }, reader)).status).toBe(403);
    expect((await get('/v2/service/acme/draw', reader)).status).toBe(200);
  });

  test('what belongs to another account looks absent, word for word', async () => {
    const stranger = await tokenFor('stranger', ['read', 'push', 'connect', 'manage']);
    const { backend_id: id } = (await post(connectPath)).body;
    const absent = id.replace(/^./, (first: string) => (first === 'a' ? 'b' : 'a'));
    const shape = ({ status, body }: Reply, name: string) => [
      status,
      body.error.code,
      body.error.message.replaceAll(name, '*'),
    ];
    expect(shape(await get(`/v2/backend/${id}`, stranger), id)).toEqual(
      shape(await get(`/v2/backend/${absent}`), absent),
    );
    expect(shape(await post(`/v2/backend/${id}/terminate`, {}, stranger), id)).toEqual(
      shape(await post(`/v2/backend/${absent}/terminate`), absent),
    );
    expect(shape(await get('/v2/service/acme/draw', stranger), 'draw')).toEqual(
      shape(await get('/v2/service/acme/nope', stranger), 'nope'),
    );
  });

  test('an unknown path is 404 in JSON', async () => {
    const { status, body } = await get('/v2/nothing');
    expect([status, body.error.code]).toEqual([404, 'NotFound']);
  });
});

describe('backends', () => {
  test('show their status to everyone, from every origin, and nothing more', async () => {
    const { body } = await post(connectPath);
    const reply = await call('GET', `/v2/backend/${body.backend_id}/status`);
    expect(reply.headers.get('access-control-allow-origin')).toBe('*');
    expect(reply.body).toEqual({ status: 'scheduled', time: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) });
  });

  test('stream their history, then what happens, and end after terminated', async () => {
    const { body } = await post(connectPath);
    const response = await fetch(`${body.status_url}/stream`);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const whole = response.text();
    await change(body.backend_id, becomeServing);
    await change(body.backend_id, (current) => end(current, { kind: null, reason: null, exitCode: 3 }, new Date()));
    const events = (await whole).split('\n').filter((line) => line.startsWith('data:'));
    const statuses = events.map((line) => JSON.parse(line.slice(5)));
    expect(statuses.map(({ status }) => status)).toEqual(['scheduled', 'waiting', 'ready', 'terminated']);
    expect(statuses.at(-1)).toMatchObject({ termination_kind: null, termination_reason: null, exit_error: true });
    const resumed = await call('GET', `/v2/backend/${body.backend_id}/status/stream`, {
      headers: { 'last-event-id': '2' },
    });
    expect(resumed.body.match(/^data:/gm)).toHaveLength(1);
  });

  test('are listed: running ones of an account, all of a service within a time', async () => {
    const first = (await post('/v2/service/acme/other/connect')).body.backend_id;
    const second = (await post('/v2/service/acme/other/connect')).body.backend_id;
    await post(`/v2/backend/${first}/terminate`);
    const running = (await get('/v2/account/acme/backends')).body.running_backends.map(({ id }: { id: string }) => id);
    expect(running).toContain(second);
    expect(running).not.toContain(first);
    const all = (await get('/v2/service/acme/other/backends')).body.backends;
    expect(all.slice(0, 2).map(({ id }: { id: string }) => id)).toEqual([second, first]);
    const none = await get('/v2/service/acme/other/backends?end=2020-01-01T00:00:00Z');
    expect(none.body.backends).toEqual([]);
    expect((await get('/v2/service/acme/other/backends?start=yesterday')).status).toBe(400);
  });

  test('end at once when no node has taken them, and then cannot be ended again', async () => {
    const { body } = await post(connectPath);
    expect((await post(`/v2/backend/${body.backend_id}/terminate`)).body).toEqual({ status: 'ok' });
    const after = await call('GET', `/v2/backend/${body.backend_id}/status`);
    expect(after.body).toMatchObject({
      status: 'terminated',
      termination_kind: 'soft',
      termination_reason: 'external',
    });
    const again = await post(`/v2/backend/${body.backend_id}/terminate`);
    expect([again.status, again.body.error.code]).toEqual([409, 'BackendNotRunning']);
  });

  test('that run are told "ok" once their node has begun', async () => {
    const { body } = await post(connectPath);
    await change(body.backend_id, becomeServing);
    const answered = post(`/v2/backend/${body.backend_id}/terminate`, { hard: true });
    await expect.poll(async () => (await store.get(backends, body.backend_id))?.stop?.kind).toBe('hard');
    await change(body.backend_id, (current) => beginStop(current, new Date()));
    expect((await answered).body).toEqual({ status: 'ok' });
  });
});

describe('services', () => {
  test('are created once, listed by name and shown', async () => {
    expect((await post('/v2/account/acme/service', { name: 'board' })).body).toEqual({ status: 'ok' });
    const again = await post('/v2/account/acme/service', { name: 'board' });
    expect([again.status, again.body.error.code]).toEqual([409, 'ServiceExists']);
    expect((await get('/v2/account/acme/services')).body.services).toContain('board');
    expect((await get('/v2/service/acme/board')).body).toEqual({
      account_name: 'acme',
      created_at: expect.any(String),
      environments: [
        {
          cluster: 'main',
          created_at: expect.any(String),
          image_tag: 'latest',
          last_spawned_at: null,
          name: 'default',
        },
      ],
      image_name: 'registry.example/acme/board',
      last_image_digest: null,
      last_image_upload_time: null,
      last_spawned_at: null,
      name: 'board',
    });
  });

  test.each(['', 'A', '-a', 'a..b', '../b', 'a/b', 'x'.repeat(64)])('cannot be called %j', async (name) => {
    expect((await post('/v2/account/acme/service', { name })).status).toBe(400);
  });

  test('spawn what update names, until a connect request names something else', async () => {
    await pushImage('v2', digest('c'));
    expect((await post('/v2/service/acme/draw/update', { image_tag: 'v2' })).body).toEqual({ status: 'ok' });
    const spawned = async (body?: unknown) => {
      const { backend_id: id } = (await post(connectPath, body)).body;
      return (await get(`/v2/backend/${id}`)).body.image_digest;
    };
    expect(await spawned()).toBe(digest('c'));
    expect(await spawned({ spawn: { tag: 'latest' } })).toBe(digest('a'));
    const unknown = await post('/v2/service/acme/draw/update', { image_tag: 'nope' });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'ImageNotFound']);
  });

  test('are private until they are made public, by who may manage them', async () => {
    const path = '/v2/service/acme/draw/visibility';
    expect((await get(path)).body).toEqual({ public: false });
    expect((await post(path, { public: true })).body).toEqual({ status: 'ok' });
    expect((await get(path)).body).toEqual({ public: true });
    expect((await get('/v2/service/acme/draw')).body).not.toHaveProperty('public');
    const pusher = await tokenFor('acme', ['read', 'push', 'connect']);
    expect((await post(path, { public: false }, pusher)).body.error.code).toBe('Forbidden');
    const stranger = await tokenFor('other', ['read', 'push', 'connect', 'manage']);
    expect((await post(path, { public: false }, stranger)).body.error.code).toBe('ServiceNotFound');
    expect((await get(path, stranger)).body.error.code).toBe('ServiceNotFound');
    for (const body of [{}, { public: 'yes' }, { public: true, more: 1 }]) {
      expect((await post(path, body)).status).toBe(400);
    }
    expect((await get(path)).body).toEqual({ public: true });
    await post(path, { public: false });
    expect((await get(path)).body).toEqual({ public: false });
  });

  test('show their images, the newest first', async () => {
    await pushImage('v3', digest('d'));
    const { images: shown } = (await get('/v2/service/acme/draw/images')).body;
    expect(shown[0]).toEqual({
      digest: digest('d'),
      repository: 'acme/draw',
      tag: 'v3',
      upload_time: expect.any(String),
    });
    expect(shown.length).toBeGreaterThan(1);
  });
});

describe('the readiness page', () => {
  test('shows what is happening, redirects when ready, and says why it failed', async () => {
    const { body } = await post(connectPath);
    const path = new URL(body.ready_url).pathname;
    const waiting = await call('GET', path);
    expect([waiting.status, waiting.body]).toEqual([200, expect.stringContaining('Waiting for a place')]);
    expect(waiting.headers.get('content-security-policy')).toContain("default-src 'none'");
    await change(body.backend_id, becomeServing);
    const ready = await call('GET', path);
    expect([ready.status, ready.headers.get('location')]).toEqual([303, body.url]);

    const failing = (await post(connectPath)).body;
    const failure = 'Image <b>not</b> found';
    await change(failing.backend_id, (current) =>
      end(current, { kind: null, reason: null, exitCode: null, failure }, new Date()),
    );
    const failed = await call('GET', new URL(failing.ready_url).pathname);
    expect([failed.status, failed.body]).toEqual([410, expect.stringContaining('Image &#60;b&#62;not')]);
  });

  test('belongs to one token of one backend', async () => {
    const [one, other] = [(await post(connectPath)).body, (await post(connectPath)).body];
    expect((await call('GET', `/ready/${one.backend_id}/${other.token}/`)).status).toBe(404);
    expect((await call('GET', `/ready/${one.backend_id}/nonsense/`)).status).toBe(404);
  });
});

describe('image archives', () => {
  const path = '/v2/service/acme/draw/images';
  const send = async (as: string, target = path) =>
    await call('POST', target, {
      headers: { authorization: `Bearer ${as}`, 'content-type': 'application/x-tar' },
      body: 'an archive',
    });

  test('who may not push or read is told so before anything else', async () => {
    const [reader, pusher] = [await tokenFor('acme', ['read']), await tokenFor('acme', ['push'])];
    const stranger = await tokenFor('other', ['read', 'push']);
    const archive = `${path}/${digest('a')}/archive`;
    expect((await send(reader)).body.error.code).toBe('Forbidden');
    expect((await get(archive, pusher)).body.error.code).toBe('Forbidden');
    expect((await send(stranger)).body.error.code).toBe('ServiceNotFound');
    expect((await get(archive, stranger)).body.error.code).toBe('ServiceNotFound');
  });

  test('a process that cannot reach the bytes of images says what to do', async () => {
    const replies = [await send(token), await get(`${path}/${digest('a')}/archive`)];
    for (const { status, body } of replies) {
      expect([status, body.error.code, body.error.message]).toEqual([
        501,
        'ImagesElsewhere',
        expect.stringContaining('BERTH_BLOBS=gridfs'),
      ]);
    }
  });
});
