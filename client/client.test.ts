/** The client against the real API. Tests lose responses in the client's `fetch`, after the API has handled the request. */
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { becomeServing, digestOf, openTestApi } from '../api/testing/test-api.ts';
import type { TestApi } from '../api/testing/test-api.ts';
import { backends, becomeTerminated } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { skipWaits } from '../test/kit/machine/skipped-waits.ts';
import { BerthClient, BerthError } from './index.ts';
import type { ClientOptions } from './index.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

const ended = (backend: Backend) => becomeTerminated(backend, { kind: null, reason: null, exitCode: 1 }, new Date());

function clientOf(options: Partial<ClientOptions> = {}): BerthClient {
  return new BerthClient({ url: api.base, token: api.token, retryDelayMs: 1, ...options });
}

/** Returns the error with which a call rejects. */
async function errorOf(call: Promise<unknown>): Promise<BerthError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof BerthError)) throw new Error('The call did not throw a BerthError', { cause: error });
  return error;
}

/** A `fetch` whose responses a test replaces after the API has handled the request. Records the requests. */
function fetchWith(replace: (response: Response, count: number) => Response | Promise<Response>) {
  const sent: { method: string; path: string; headers: Headers }[] = [];
  const replacing = async (input: Parameters<typeof fetch>[0], init: RequestInit = {}) => {
    sent.push({
      method: init.method ?? 'GET',
      path: new URL(input).pathname,
      headers: new Headers(init.headers),
    });
    return await replace(await fetch(input, init), sent.length);
  };
  return { fetch: replacing, sent };
}

/** Loses the responses to the first requests. */
function fetchThatLoses(times: number) {
  return fetchWith((response, count) => {
    if (count > times) return response;
    throw new TypeError('fetch failed');
  });
}

/** The response of a component that is unavailable. */
function unavailable(status: number, retryAfter?: string): Response {
  const headers = {
    'content-type': 'application/json',
    ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
  };
  const error = { code: 'Unavailable', message: 'Try again', status, id: 'one' };
  return new Response(JSON.stringify({ error }), { status, headers });
}

/** Adds a service with an image for one test, which counts its backends. */
async function addService(name: string): Promise<string> {
  await api.addService(name);
  await api.addImage(`acme/${name}`, 'latest', digestOf('a'));
  return `acme/${name}`;
}

test('connects, waits until the backend is ready, and stops it', async () => {
  const berth = clientOf();
  const connection = await berth.connect('acme/draw', { key: 'room-1' });
  expect(connection).toMatchObject({ status: 'scheduled', spawned: true });
  const ready = berth.waitUntilReady(connection.backend_id);
  await api.change(connection.backend_id, becomeServing);
  expect(await ready).toMatchObject({ status: 'ready' });
  expect(await berth.connect('acme/draw', { key: 'room-1' })).toMatchObject({ status: 'ready', spawned: false });
  const stopping = berth.stop(connection.backend_id, { hard: true });
  const terminated = berth.waitUntilTerminated(connection.backend_id);
  await expect
    .poll(async () => (await api.store.get(backends, connection.backend_id))?.stop)
    .toMatchObject({ kind: 'hard' });
  await api.change(connection.backend_id, ended);
  await stopping;
  expect(await terminated).toMatchObject({ status: 'terminated', exit_error: true });
});

describe('retries', () => {
  test('a connect with a key whose response was lost: the second request finds the same backend', async () => {
    const { fetch, sent } = fetchThatLoses(1);
    const service = await addService('keyed');
    const connection = await clientOf({ fetch }).connect(service, { key: 'room-1' });
    expect(sent).toHaveLength(2);
    const [only, ...others] = await Array.fromAsync(clientOf().backends(service));
    expect([only?.id, others]).toEqual([connection.backend_id, []]);
  });

  test('no connect without a key whose response was lost: that would start a second backend', async () => {
    const { fetch, sent } = fetchThatLoses(1);
    const service = await addService('keyless');
    const error = await errorOf(clientOf({ fetch }).connect(service));
    expect([error.code, error.status, sent.length]).toEqual(['Unreachable', undefined, 1]);
    expect(await Array.fromAsync(clientOf().backends(service))).toHaveLength(1);
  });

  test.each([
    ['503 without Retry-After, as a proxy sends it', 503],
    ['502 of a proxy', 502],
    ['504 of a proxy', 504],
  ])('no connect without a key after %s', async (_what, status) => {
    const { fetch, sent } = fetchWith(() => unavailable(status));
    expect((await errorOf(clientOf({ fetch }).connect('acme/draw'))).status).toBe(status);
    expect(sent).toHaveLength(1);
  });

  test.each([429, 503])('any request after %i with Retry-After, when that time has passed', async (status) => {
    const waits = skipWaits(7_000);
    const { fetch, sent } = fetchWith((response, count) => (count === 1 ? unavailable(status, '7') : response));
    await clientOf({ fetch }).connect('acme/draw');
    expect([sent.length, waits.length]).toEqual([2, 1]);
  });

  test('nothing for a server that asks for a long wait', async () => {
    const { fetch, sent } = fetchWith(() => unavailable(503, '3600'));
    const error = await errorOf(clientOf({ fetch }).status('none'));
    expect([error.code, error.retryAfterMs, sent.length]).toEqual(['Unavailable', 3_600_000, 1]);
  });

  test('a read, as often as the option `retries` allows', async () => {
    const { fetch, sent } = fetchWith(() => unavailable(502));
    expect((await errorOf(clientOf({ fetch, retries: 2 }).service('acme/draw'))).status).toBe(502);
    expect(sent).toHaveLength(3);
  });

  test('no request that the API rejects as invalid', async () => {
    const { fetch, sent } = fetchWith((response) => response);
    expect((await errorOf(clientOf({ fetch }).service('acme/other'))).code).toBe('ServiceNotFound');
    expect(sent).toHaveLength(1);
  });

  test('a stop, which succeeds if the backend has ended meanwhile', async () => {
    const { backend_id: backend } = await clientOf().connect('acme/draw');
    const losing = fetchWith(async (response, count) => {
      if (count > 1) return response;
      await api.change(backend, ended);
      throw new TypeError('fetch failed');
    });
    await clientOf({ fetch: losing.fetch }).stop(backend);
    expect(losing.sent).toHaveLength(2);
    expect((await errorOf(clientOf().stop(backend))).code).toBe('BackendNotRunning');
  });

  test('the creation of a service, which succeeds if the first attempt created it', async () => {
    await clientOf({ fetch: fetchThatLoses(1).fetch }).createService('acme/paint');
    expect((await errorOf(clientOf().createService('acme/paint'))).code).toBe('ServiceExists');
  });
});

describe('errors', () => {
  test('have the code, the status and the ID of the response', async () => {
    let id: string | null = null;
    const { fetch } = fetchWith((response) => {
      id = response.headers.get('x-request-id');
      return response;
    });
    const error = await errorOf(clientOf({ fetch }).connect('acme/draw', { key: 'free', spawn: false }));
    expect(error).toMatchObject({ name: 'BerthError', code: 'KeyNotHeld', status: 404 });
    expect(error.id).toMatch(/./);
    if (id !== null) expect(error.id).toBe(id);
  });

  test('a missing access token is Unauthorized', async () => {
    const error = await errorOf(clientOf({ token: undefined }).service('acme/draw'));
    expect([error.code, error.status]).toEqual(['Unauthorized', 401]);
  });

  test.each([
    ['a page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
    ['an error page', () => new Response('<html>', { status: 404, headers: { 'content-type': 'text/html' } })],
    ['a redirect', () => new Response(undefined, { status: 302, headers: { location: 'https://other.example' } })],
  ])('%s is not a response of the API', async (_what, page) => {
    const { fetch, sent } = fetchWith(page);
    expect((await errorOf(clientOf({ fetch }).connect('acme/draw', { key: 'a' }))).code).toBe('UnexpectedResponse');
    expect(sent).toHaveLength(1);
  });

  test('an address without a server is Unreachable, and the error does not contain the token', async () => {
    const error = await errorOf(clientOf({ url: 'http://127.0.0.1:1', retries: 0 }).service('acme/draw'));
    expect(error.code).toBe('Unreachable');
    expect(inspect(error, { depth: 10 })).not.toContain(api.token);
  });

  test.each(['ftp://berth.example', 'https://berth.example/?a=b', 'https://me:pass@berth.example', 'berth.example'])(
    'the address %s is rejected',
    (url) => {
      expect(() => clientOf({ url })).toThrow(TypeError);
    },
  );

  test.each(['acme.secr€t', 'acme.secret\n', 'acme secret'])(
    'the token %j is rejected, and the error has no part of it',
    (token) => {
      expect(() => clientOf({ token })).toThrow(
        new TypeError('token: Use an access token, which consists of ASCII characters without blanks'),
      );
    },
  );

  test.each(['draw', 'acme/', 'acme/draw/default', '../draw', 'acme/..'])(
    '%s is not the name of a service',
    async (name) => {
      const { fetch, sent } = fetchWith((response) => response);
      await expect(clientOf({ fetch }).service(name)).rejects.toThrow(TypeError);
      expect(sent).toEqual([]);
    },
  );
});

describe('time limits and signals', () => {
  const silent = (_input: unknown, { signal }: RequestInit = {}) =>
    new Promise<Response>((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error));
    });

  test('an attempt that takes too long is TimedOut', async () => {
    const error = await errorOf(clientOf({ fetch: silent, timeoutMs: 20, retries: 1 }).status('one'));
    expect(error.code).toBe('TimedOut');
  });

  test('a signal ends a request with its reason', async () => {
    const controller = new AbortController();
    const call = clientOf({ fetch: silent }).status('one', { signal: controller.signal });
    const reason = new Error('The page was closed');
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  test('a signal ends the wait before a retry', async () => {
    const controller = new AbortController();
    const reason = new Error('The page was closed');
    const { fetch, sent } = fetchWith(() => {
      setTimeout(() => controller.abort(reason));
      return unavailable(503, '30');
    });
    await expect(clientOf({ fetch }).status('one', controller)).rejects.toBe(reason);
    expect(sent).toHaveLength(1);
  });

  test('a wait for a backend that stays scheduled is TimedOut', async () => {
    const { backend_id: backend } = await clientOf().connect('acme/draw');
    const error = await errorOf(clientOf().waitUntilReady(backend, { timeoutMs: 50 }));
    expect(error.code).toBe('TimedOut');
  });

  test('a wait for a backend that has ended is BackendEnded', async () => {
    const { backend_id: backend } = await clientOf().connect('acme/draw');
    await api.change(backend, ended);
    const error = await errorOf(clientOf().waitUntilReady(backend));
    expect([error.code, error.message]).toEqual([
      'BackendEnded',
      `The backend ${backend} ended: The container exited with code 1 before it was ready.`,
    ]);
  });
});

describe('lists', () => {
  test('arrive page by page, when they are consumed', async () => {
    for (const name of ['1', '2', '3']) await clientOf().createService(`acme/${name}`);
    const { fetch, sent } = fetchWith((response) => response);
    const services = clientOf({ fetch }).services('acme', { pageSize: 1 });
    expect([(await services.next()).value, (await services.next()).value]).toEqual(['1', '2']);
    expect(sent).toHaveLength(2);
    const rest = await Array.fromAsync(services);
    expect(rest.slice(0, 1)).toEqual(['3']);
    expect(sent).toHaveLength(2 + rest.length);
  });

  test('of backends and images', async () => {
    const berth = clientOf();
    const service = await addService('listed');
    const made: string[] = [];
    for (const key of ['a', 'b', 'c']) made.unshift((await berth.connect(service, { key })).backend_id);
    expect((await Array.fromAsync(berth.backends(service, { pageSize: 2 }))).map(({ id }) => id)).toEqual(made);
    const running = (await Array.fromAsync(berth.runningBackends('acme', { pageSize: 2 }))).map(({ id }) => id);
    expect(running.filter((id) => made.includes(id))).toEqual(made);
    expect(await Array.fromAsync(berth.backends(service, { end: new Date(0) }))).toEqual([]);
    expect((await Array.fromAsync(berth.images(service))).map(({ tag }) => tag)).toEqual(['latest']);
  });
});

test('sets the image of an environment, and calls any endpoint by its name', async () => {
  const berth = clientOf();
  await api.addImage('acme/draw', 'next', digestOf('b'));
  await berth.setImage('acme/draw', 'next', { environment: 'default' });
  expect((await berth.service('acme/draw')).environments).toMatchObject([{ name: 'default', image_tag: 'next' }]);
  const path = { account: 'acme', service: 'draw' };
  await berth.call('setVisibility', { path, body: { public: true } });
  expect(await berth.call('visibility', { path })).toEqual({ public: true });
});
