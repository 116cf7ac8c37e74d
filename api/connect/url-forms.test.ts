import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { backends, becomeTerminated } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { ContainerEnv } from '../../model/container-env.ts';
import { routeMoved } from '../../contract/messages.ts';
import { routeId, routes } from '../../model/route.ts';
import { services } from '../../model/service.ts';
import { labelOfToken } from '../../model/session-host.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { becomeServing, connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
const moved: string[] = [];
/** The calls to the store. */
const calls: string[] = [];
beforeAll(async () => {
  api = await openTestApi({
    sessions: 'https://*.sessions.example',
    rules: { urlForm: 'host' },
    storeOf: (store) =>
      steered(store, {
        onCall: async ({ method, collection, run }) => {
          calls.push(`${method} ${collection}`);
          return await run();
        },
      }),
  });
  await api.bus.subscribe(routeMoved, ({ route }) => void moved.push(route));
});
afterAll(async () => await api[Symbol.asyncDispose]());
beforeEach(async () => {
  moved.length = 0;
  await api.store.update(services, 'acme/draw', ({ settings: _settings, ...rest }) => rest);
});

const settingsPath = '/v2/service/acme/draw/settings';
const hostUrl = /^https:\/\/[a-z2-7]{52}\.sessions\.example\/$/;
const pathUrl = /^https:\/\/sessions\.example\/[\w-]{43}\/$/;

async function connect(body: object = {}, path = connectPath) {
  const { status, body: answer } = await api.post(path, body);
  expect(status).toBe(200);
  return answer;
}

async function end(id: string): Promise<void> {
  await api.change(id, (backend) => becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, new Date()));
}

async function routeOf({ token }: { token: string }) {
  return await api.store.get(routes, routeId(token));
}

async function variablesOf(id: string): Promise<Readonly<Record<string, string>>> {
  return new ContainerEnv(api.secret).open((await api.store.get(backends, id)) as Backend);
}

describe('the form of the URL', () => {
  test('is that of the request, else that of the service, else that of the platform', async () => {
    expect((await connect()).url).toMatch(hostUrl);
    expect((await connect({ url_form: 'path' })).url).toMatch(pathUrl);
    await api.post(settingsPath, { url_form: 'path' });
    expect((await connect()).url).toMatch(pathUrl);
    expect((await connect({ url_form: 'host' })).url).toMatch(hostUrl);
  });

  test('does not change the fields of the answer: the label encodes the token', async () => {
    const [host, path] = [await connect(), await connect({ url_form: 'path' })];
    expect(Object.keys(host)).toEqual(Object.keys(path));
    expect(host.url).toBe(`https://${labelOfToken(host.token)}.sessions.example/`);
    expect(host.secret_token).toBe(`secret of ${host.token}`);
  });

  test.each(['/v1', ''])('is chosen in the same way through "%s"', async (prefix) => {
    const path = `${prefix}/user/acme/service/draw`;
    expect((await connect({}, `${path}/spawn`)).url).toMatch(hostUrl);
    expect((await connect({ url_form: 'path' }, `${path}/spawn`)).url).toMatch(pathUrl);
    const lock = `forms${prefix}`;
    const spawned = await connect({ lock }, `${path}/spawn`);
    expect((await connect({ lock }, `${path}/fetch`)).url).toBe(spawned.url);
    expect((await connect({ lock, url_form: 'path' }, `${path}/fetch`)).url).toMatch(pathUrl);
  });

  test('is chosen by the client of a spawn token, else by its owner', async () => {
    const create = async (body: object) => (await connect(body, '/user/acme/service/draw/token')).token;
    const [plain, path] = [await create({}), await create({ url_form: 'path' })];
    expect((await connect({}, `/token/${plain}/spawn`)).url).toMatch(hostUrl);
    expect((await connect({ url_form: 'path' }, `/token/${plain}/spawn`)).url).toMatch(pathUrl);
    expect((await connect({}, `/token/${path}/spawn`)).url).toMatch(pathUrl);
  });

  test('is path on a platform without a session domain, which rejects the form host', async () => {
    await using other = await openTestApi({ rules: { urlForm: 'path' } });
    await other.store.update(services, 'acme/draw', (service) => ({
      ...service,
      settings: { urlForm: 'host' as const },
    }));
    expect((await other.post(connectPath)).body.url).toMatch(pathUrl);
    for (const path of [connectPath, settingsPath]) {
      const { status, body } = await other.post(path, { url_form: 'host' });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining('url_form:')]);
    }
  });
});

describe('the host of a session with a key', () => {
  test('is the same for the same user and auth, also on the next backend', async () => {
    const request = { key: 'stable', user: 'ada', auth: { role: 'editor' } };
    const first = await connect(request);
    expect(moved).toContain(routeId(first.token));
    moved.length = 0;
    expect((await connect(request)).url).toBe(first.url);
    expect(moved).toEqual([]);
    await end(first.backend_id);
    const next = await connect(request);
    expect([next.url, next.spawned, next.backend_id === first.backend_id]).toEqual([first.url, true, false]);
    expect((await routeOf(next))?.backend).toBe(next.backend_id);
    expect(moved).toContain(routeId(first.token));
  });

  test('costs a connect to a held key no more calls to the store than a path', async () => {
    // The fewest calls of five connects: once a second, a connect also touches the backend, or reads what is no longer cached.
    const callsOf = async (url_form: string) => {
      await connect({ key: 'held', url_form });
      const callsOfConnects: string[][] = [];
      for (let i = 0; i < 5; i += 1) {
        calls.length = 0;
        await connect({ key: 'held', url_form });
        callsOfConnects.push(calls.filter((call) => call !== `update ${backends.name}`).toSorted());
      }
      return callsOfConnects.toSorted((one, other) => one.length - other.length)[0];
    };
    const withHost = await callsOf('host');
    expect(withHost).toContain(`get ${routes.name}`);
    expect(withHost).toEqual(await callsOf('path'));
  });

  test('differs between users, auths, keys and services', async () => {
    await api.addService('other');
    await api.addImage('acme/other', 'latest', `sha256:${'a'.repeat(64)}`);
    const key = 'apart';
    const all = [
      await connect({ key }),
      await connect({ key, user: 'ada' }),
      await connect({ key, user: 'grace' }),
      await connect({ key, user: 'ada', auth: { role: 'editor' } }),
      await connect({ key, user: 'ada', auth: { role: 'viewer' } }),
      await connect({ key: 'another' }),
      await connect({ key }, '/v2/service/acme/other/connect'),
    ];
    expect(new Set(all.map(({ url }) => url)).size).toBe(all.length);
  });

  test('a user who does not reconnect cannot reach the next backend', async () => {
    const key = 'left';
    const [ada, grace] = [await connect({ key, user: 'ada' }), await connect({ key, user: 'grace' })];
    await end(ada.backend_id);
    const next = await connect({ key, user: 'grace' });
    expect((await routeOf(grace))?.backend).toBe(next.backend_id);
    expect((await routeOf(ada))?.backend).toBe(ada.backend_id);
  });

  test('a connect with the path form keeps its own URL, which ends with its backend', async () => {
    const request = { key: 'both', url_form: 'path' };
    const [path, host] = [await connect(request), await connect({ key: 'both' })];
    expect(path.backend_id).toBe(host.backend_id);
    await end(path.backend_id);
    const next = await connect(request);
    expect(next.url).not.toBe(path.url);
    expect((await routeOf(path))?.backend).toBe(path.backend_id);
  });

  test('the readiness URL leads there, and the page of the previous backend redirects to that of the next', async () => {
    const first = await connect({ key: 'ready' });
    await end(first.backend_id);
    const next = await connect({ key: 'ready' });
    const page = (url: string) => api.call('GET', new URL(url).pathname);
    expect((await page(next.ready_url)).body).toContain(`data-url="${next.url}"`);
    expect((await page(first.ready_url)).headers.get('location')).toBe(next.ready_url);
    const readyPath = new URL(next.ready_url).pathname;
    const login = await api.call('GET', `/login?${new URLSearchParams({ next: readyPath }).toString()}`);
    expect(login.body).toContain(`value="${readyPath}"`);
    await api.change(next.backend_id, becomeServing);
    expect((await page(next.ready_url)).headers.get('location')).toBe(next.url);
  });
});

test.each(['host', 'path'])(
  'an older readiness page leads to the URL of the spawn, in the form %s',
  async (url_form) => {
    const spawned = await connect({ lock: `older-${url_form}`, url_form }, '/v1/user/acme/service/draw/spawn');
    await api.change(spawned.name, becomeServing);
    const page = await api.call('GET', `/v1/backend/${spawned.name}/ready`);
    expect([page.status, page.headers.get('location')]).toEqual([303, spawned.url]);
  },
);

describe('the URL in the environment of a container', () => {
  test('is the host URL of connects without a user, and works before the first of them', async () => {
    for (const request of [{}, { key: 'base' }, { user: 'ada' }, { key: 'base-2', user: 'ada', url_form: 'path' }]) {
      const { backend_id: id } = await connect(request);
      const { SESSION_BACKEND_URL: url = '', BERTH_URL: same } = await variablesOf(id);
      expect([url, same]).toEqual([expect.stringMatching(hostUrl), url]);
      const written = await api.store.find(routes, { index: 'byBackend', equals: { backend: id } });
      const withoutUser = written.filter(({ user }) => user === undefined);
      expect(withoutUser).toHaveLength(1);
      expect(JSON.stringify(await api.store.get(backends, id))).not.toContain(new URL(url).hostname);
    }
    const { backend_id: id, url } = await connect({ key: 'base-3' });
    expect((await variablesOf(id))['BERTH_URL']).toBe(url);
  });

  test('can be set by the request or the service', async () => {
    await api.post(settingsPath, { env: { BERTH_URL: 'of the service' } });
    const { backend_id: id } = await connect({ spawn: { executable: { env: { SESSION_BACKEND_URL: 'mine' } } } });
    expect(await variablesOf(id)).toMatchObject({ BERTH_URL: 'of the service', SESSION_BACKEND_URL: 'mine' });
  });

  test('PLATFORM_URL of the earliest form is the URL of the spawn', async () => {
    for (const url_form of ['host', 'path']) {
      const { name, url } = await connect({ url_form, lock: `platform-${url_form}` }, '/user/acme/service/draw/spawn');
      expect((await variablesOf(name))['PLATFORM_URL']).toBe(url);
    }
  });
});

test('the API is not reachable under the host of a session', async () => {
  const { token } = await connect();
  const ask = async (host: string) => {
    const { request } = await import('node:http');
    const sent = request(`${api.base}/v2/service/acme/draw`, {
      headers: { host, authorization: `Bearer ${api.token}` },
    });
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    sent.once('response', (response) => resolve(response.resume().statusCode)).once('error', reject);
    sent.end();
    return await promise;
  };
  expect(await ask(`${labelOfToken(token)}.sessions.example`)).toBe(421);
  expect(await ask(`${labelOfToken(token)}.sessions.example:7100`)).toBe(421);
  expect(await ask('sessions.example')).toBe(200);
  expect(await ask('api.sessions.example')).toBe(200);
});
