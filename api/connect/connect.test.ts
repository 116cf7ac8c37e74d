import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { backends, becomeTerminated, requestStop, sweepIdle } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { services } from '../../model/service.ts';
import { routeId, routes } from '../../model/route.ts';
import { becomeServing, connectPath, digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('connect', () => {
  test('without a key spawns a backend and notifies the cluster', async () => {
    const { status, headers, body } = await api.post(connectPath);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json');
    expect(body).toEqual({
      backend_id: expect.stringMatching(/^[a-z0-9]{18}$/),
      url: `https://sessions.example/${body.token}/`,
      token: expect.stringMatching(/^[\w-]{43}$/),
      secret_token: `secret of ${body.token}`,
      ready_url: `${api.base}/ready/${body.backend_id}/${body.token}/`,
      status_url: `${api.base}/v2/backend/${body.backend_id}/status`,
      status: 'scheduled',
      spawned: true,
    });
    await expect.poll(() => api.notified).toContain(body.backend_id);
  });

  test('with a key that is held returns its backend, with a token for each different user', async () => {
    const users = [
      {},
      { user: 'ada' },
      { user: 'grace' },
      { user: '' },
      { auth: { role: 'editor' } },
      { user: 'ada', auth: { role: 'editor' } },
      { user: 'ada', auth: { role: 'viewer' } },
    ];
    const replies = await Promise.all(users.map(async (user) => await api.post(connectPath, { key: 'held', ...user })));
    expect(replies.filter(({ body }) => body.spawned)).toHaveLength(1);
    expect(new Set(replies.map(({ body }) => body.backend_id)).size).toBe(1);
    expect(new Set(replies.map(({ body }) => body.token)).size).toBe(users.length);
  });

  test('with a key that a backend of a deleted service holds spawns a backend of the new service', async () => {
    await api.addService('recreated');
    await api.addImage('acme/recreated', 'latest', digestOf('a'));
    const path = '/v2/service/acme/recreated/connect';
    const { backend_id: old } = (await api.post(path, { key: 'room' })).body;
    const { createdAt = new Date() } = (await api.store.get(backends, old)) ?? {};
    // As after a deletion and a creation, before the next pass over deleted services.
    const clearBefore = new Date(createdAt.getTime() + 1);
    await api.store.update(services, 'acme/recreated', (service) => ({ ...service, clearBefore }));
    expect((await api.post(path, { key: 'room', spawn: false })).body.error.code).toBe('KeyNotHeld');
    const { body } = await api.post(path, { key: 'room' });
    expect(body.spawned).toBe(true);
    expect((await api.store.get(backends, body.backend_id))?.waitsFor).toBe(old);
    expect((await api.post(path, { key: 'room' })).body.backend_id).toBe(body.backend_id);
  });

  test('without a user, however often, returns the same token and keeps one route', async () => {
    const first = await api.post(connectPath, { key: 'anonymous' });
    const more = await Promise.all(Array.from({ length: 20 }, () => api.post(connectPath, { key: 'anonymous' })));
    expect(new Set([first, ...more].map(({ body }) => body.token)).size).toBe(1);
    const backend = first.body.backend_id;
    const stored = await api.store.find(routes, { index: 'byBackend', equals: { backend } });
    expect(stored).toEqual([{ id: routeId(first.body.token), backend }]);
  });

  test('of the same user, repeated and concurrent, returns the same token and keeps one route', async () => {
    const about = { key: 'often', user: 'ada', auth: { role: 'editor' } };
    const first = await api.post(connectPath, about);
    const more = await Promise.all(Array.from({ length: 20 }, async () => await api.post(connectPath, about)));
    expect(new Set([first, ...more].map(({ body }) => body.token)).size).toBe(1);
    const backend = first.body.backend_id;
    const stored = await api.store.find(routes, { index: 'byBackend', equals: { backend } });
    expect(stored).toEqual([{ id: routeId(first.body.token), backend, user: 'ada', userData: '{"role":"editor"}' }]);
  });

  test('of the same user to another backend returns another token', async () => {
    const [one, other] = [await api.post(connectPath, { user: 'ada' }), await api.post(connectPath, { user: 'ada' })];
    expect(one.body.backend_id).not.toBe(other.body.backend_id);
    expect(one.body.token).not.toBe(other.body.token);
  });

  test('50 concurrent requests for one key spawn one backend', async () => {
    const replies = await Promise.all(Array.from({ length: 50 }, () => api.post(connectPath, { key: 'crowd' })));
    expect(new Set(replies.map(({ body }) => body.backend_id)).size).toBe(1);
    expect(replies.filter(({ body }) => body.spawned)).toHaveLength(1);
  });

  test('the same key of two services is two keys', async () => {
    await api.addService('other');
    await api.addImage('acme/other', 'latest', digestOf('b'));
    const [here, there] = await Promise.all([
      api.post(connectPath, { key: 'same' }),
      api.post('/v2/service/acme/other/connect', { key: 'same' }),
    ]);
    expect([here.body.spawned, there.body.spawned]).toEqual([true, true]);
  });

  test('with spawn: false finds a holder or reports that there is none', async () => {
    const absent = await api.post(connectPath, { key: 'absent', spawn: false });
    expect([absent.status, absent.body.error.code]).toEqual([404, 'KeyNotHeld']);
    await api.post(connectPath, { key: 'present' });
    const present = await api.post(connectPath, { key: 'present', spawn: false });
    expect([present.status, present.body.spawned]).toEqual([200, false]);
    expect((await api.post(connectPath, { spawn: false })).status).toBe(400);
  });

  test('after the holder has ended spawns a new backend, with a higher fencing token', async () => {
    const first = await api.post(connectPath, { key: 'again' });
    await api.change(first.body.backend_id, (current) =>
      becomeTerminated(current, { kind: null, reason: null, exitCode: 0 }, new Date()),
    );
    const second = await api.post(connectPath, { key: 'again' });
    expect(second.body.spawned).toBe(true);
    const [before, after] = await Promise.all(
      [first, second].map(({ body }) => api.store.get(backends, body.backend_id)),
    );
    expect(after?.fencingToken).toBeGreaterThan(before?.fencingToken ?? Infinity);
  });

  test('while the holder is ending spawns a successor that waits for it, even if an earlier successor never started', async () => {
    const first = (await api.post(connectPath, { key: 'successor' })).body.backend_id as string;
    await api.change(first, becomeServing);
    await api.change(first, (current) => requestStop(current, 'soft', 'external', new Date()));
    const second = (await api.post(connectPath, { key: 'successor' })).body.backend_id as string;
    expect((await api.store.get(backends, second))?.waitsFor).toBe(first);
    await api.change(second, (current) => requestStop(current, 'soft', 'external', new Date()));
    const third = await api.post(connectPath, { key: 'successor' });
    expect((await api.store.get(backends, third.body.backend_id))?.waitsFor).toBe(first);
  });

  test('of a free key reads no more backends after many successions than after one', async () => {
    const readsAfter = async (successions: number) => {
      const key = `successions: ${successions}`;
      const ending = (current: Backend) =>
        becomeTerminated(current, { kind: null, reason: null, exitCode: 0 }, new Date());
      let holder = (await api.post(connectPath, { key })).body.backend_id as string;
      await api.change(holder, becomeServing);
      for (let each = 0; each < successions; each += 1) {
        await api.change(holder, (current) => requestStop(current, 'soft', 'external', new Date()));
        const successor = (await api.post(connectPath, { key })).body.backend_id as string;
        expect((await api.store.get(backends, successor))?.waitsFor).toBe(holder);
        await api.change(holder, ending);
        await api.change(successor, becomeServing);
        holder = successor;
      }
      await api.change(holder, ending);
      const get = vi.spyOn(api.store, 'get');
      expect((await api.post(connectPath, { key })).body.spawned).toBe(true);
      const ofBackends = get.mock.calls.filter(([collection]) => collection.name === backends.name);
      get.mockRestore();
      return ofBackends.length;
    };
    expect(await readsAfter(5)).toBe(await readsAfter(1));
  });

  test('returns a successor if the holder was swept after it was read', async () => {
    const first = (await api.post(connectPath, { key: 'swept' })).body.backend_id as string;
    await api.change(first, becomeServing);
    const update = api.store.update.bind(api.store);
    const sweptMeanwhile = vi.spyOn(api.store, 'update').mockImplementationOnce(async (...change) => {
      await api.change(first, (current) => sweepIdle(current, undefined, new Date()));
      return await update(...change);
    });
    const second = await api.post(connectPath, { key: 'swept' });
    sweptMeanwhile.mockRestore();
    expect((await api.store.get(backends, first))?.status).toBe('terminating');
    expect(second.body.spawned).toBe(true);
    expect((await api.store.get(backends, second.body.backend_id))?.waitsFor).toBe(first);
  });

  test('restarts the idle time, also in concurrent requests', async () => {
    const first = (await api.post(connectPath, { key: 'touched' })).body.backend_id as string;
    await api.change(first, becomeServing);
    const before = Date.now();
    await Promise.all(Array.from({ length: 20 }, () => api.post(connectPath, { key: 'touched' })));
    const touchedAt = (await api.store.get(backends, first))?.touchedAt?.getTime() ?? 0;
    expect(touchedAt).toBeGreaterThanOrEqual(before);
  });

  test.each([
    ['unknown tag', connectPath, { spawn: { tag: 'nope' } }, 404, 'ImageNotFound'],
    ['unknown digest', connectPath, { spawn: { tag: digestOf('f') } }, 404, 'ImageNotFound'],
    ['unknown service', '/v2/service/acme/nope/connect', {}, 404, 'ServiceNotFound'],
    ['unknown environment', '/v2/service/acme/draw/nope/connect', {}, 404, 'EnvironmentNotFound'],
    ['another account', '/v2/service/other/draw/connect', {}, 404, 'ServiceNotFound'],
    [
      'mounts without a folder for them',
      connectPath,
      { spawn: { executable: { mount: true } } },
      409,
      'MountsDisabled',
    ],
  ])('%s', async (_what, path, body, status, code) => {
    const reply = await api.post(path, body);
    expect([reply.status, reply.body.error.code]).toEqual([status, code]);
  });

  test('for a service without images reports where to push one', async () => {
    await api.addService('empty');
    const { status, body } = await api.post('/v2/service/acme/empty/connect');
    expect([status, body.error.code]).toEqual([409, 'NoImage']);
    expect(body.error.message).toContain('registry.example/acme/empty');
  });
});
