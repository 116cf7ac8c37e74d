import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeQueue, stopJob } from '../../contract/jobs.ts';
import { openInProcessQueue } from '../../core/queue/in-process.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { JobHandlers } from '../../core/queue/queue.ts';
import { assign, backends } from '../../model/backend.ts';
import { images } from '../../model/image.ts';
import { services, withDeletion } from '../../model/service.ts';
import { spawnTokens } from '../../model/spawn-token.ts';
import { ServiceClearing } from './service-clearing.ts';
import { becomeServing, connectPath, digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';
import { steered } from '../../test/kit/ports/steered.ts';

const deletePath = '/v2/service/acme/draw/delete';

let api: TestApi;
beforeEach(async () => void (api = await openTestApi()));
afterEach(async () => await api[Symbol.asyncDispose]());

async function until(holds: () => Promise<boolean>): Promise<void> {
  await expect.poll(holds, { interval: 10 }).toBe(true);
}

async function statusOf(id: string): Promise<string> {
  return (await api.call('GET', `/v2/backend/${id}/status`)).body.status;
}

describe('deleting a service', () => {
  test('rejects connects at once, in every generation, and hides the service', async () => {
    await api.post('/user/acme/service/draw/token');
    const token = (await api.post('/user/acme/service/draw/token')).body.token;
    expect((await api.post(deletePath)).body).toEqual({ status: 'ok' });
    for (const [path, body] of [
      [connectPath, {}],
      [connectPath, { key: 'a' }],
      ['/v2/service/acme/draw/default/connect', {}],
      ['/v1/user/acme/service/draw/spawn', {}],
      ['/user/acme/service/draw/spawn', {}],
      ['/v1/user/acme/service/draw/fetch', { lock: 'a' }],
      ['/v2/service/acme/draw/update', { image_tag: 'latest' }],
      [deletePath, undefined],
    ] as const) {
      const { status, body: answer } = await api.post(path, body);
      expect([path, status, answer.error.code]).toEqual([path, 404, 'ServiceNotFound']);
    }
    expect((await api.call('POST', `/token/${token}/spawn`)).status).toBe(404);
    for (const path of ['', '/images', '/backends', '/environments', '/visibility']) {
      expect((await api.get(`/v2/service/acme/draw${path}`)).body.error.code).toBe('ServiceNotFound');
    }
    expect((await api.get('/v2/account/acme/services')).body.services).toEqual([]);
    expect((await api.get('/v1/user/acme/services')).body.services).toEqual([]);
  });

  test('stops its backends softly, and no backends of other services', async () => {
    await api.addService('other');
    await api.addImage('acme/other', 'latest', digestOf('b'));
    const unplaced = (await api.post(connectPath)).body.backend_id;
    const running = (await api.post(connectPath, { key: 'a' })).body.backend_id;
    const other = (await api.post('/v2/service/acme/other/connect')).body.backend_id;
    await api.change(running, becomeServing);
    await api.post(deletePath);
    await until(async () => (await statusOf(unplaced)) === 'terminated');
    await until(async () => (await api.store.get(backends, running))?.stop !== undefined);
    expect((await api.store.get(backends, running))?.stop).toMatchObject({ kind: 'soft', reason: 'external' });
    expect((await api.store.get(backends, other))?.stop).toBeUndefined();
    expect(await statusOf(other)).toBe('scheduled');
    // Ended backends stay readable.
    expect((await api.get(`/v2/backend/${unplaced}`)).body.service_name).toBe('draw');
  });

  test('removes its images and spawn tokens', async () => {
    await api.post('/user/acme/service/draw/token');
    const left = async () => [
      ...(await api.store.find(images, { index: 'byTime', equals: { repository: 'acme/draw' } })),
      ...(await api.store.find(spawnTokens, { index: 'byService', equals: { account: 'acme', service: 'draw' } })),
    ];
    expect(await left()).toHaveLength(2);
    await api.post(deletePath);
    await until(async () => (await left()).length === 0);
    expect(await left()).toEqual([]);
  });

  test('a new service with the name can be created at once, and inherits nothing from the old one', async () => {
    const old = (await api.post(connectPath, { key: 'a' })).body.backend_id;
    await api.change(old, becomeServing);
    const token = (await api.post('/user/acme/service/draw/token')).body.token;
    await api.post('/v2/service/acme/draw/environments', { name: 'staging' });
    await api.post(deletePath);
    expect((await api.post('/v2/account/acme/service', { name: 'draw' })).body).toEqual({ status: 'ok' });
    expect((await api.get('/v2/service/acme/draw/images')).body.images).toEqual([]);
    expect((await api.get('/v2/service/acme/draw')).body.environments).toHaveLength(1);
    expect((await api.post(connectPath)).body.error.code).toBe('NoImage');
    await api.addImage('acme/draw', 'latest', digestOf('c'));
    const fresh = (await api.post(connectPath)).body.backend_id;
    // The pass of the deletion may still run, and the next one starts seconds later.
    await using clearing = otherProcess().clearing;
    await clearing.pass();
    await until(async () => (await api.store.get(services, 'acme/draw'))?.clearBefore === undefined);
    expect((await api.store.get(backends, old))?.stop).toBeDefined();
    expect((await api.store.get(backends, fresh))?.stop).toBeUndefined();
    expect((await api.get('/v2/service/acme/draw/images')).body.images).toHaveLength(1);
    expect((await api.call('POST', `/token/${token}/spawn`)).body.error.code).toBe('SpawnTokenNotFound');
    expect((await api.post('/v2/account/acme/service', { name: 'draw' })).body.error.code).toBe('ServiceExists');
  });

  test('needs a token of its account with the scope', async () => {
    const weak = await api.tokenFor('acme', ['read', 'connect', 'push', 'deploy']);
    const other = await api.tokenFor('other', ['manage']);
    expect((await api.post(deletePath, undefined, weak)).body.error.code).toBe('Forbidden');
    expect((await api.post(deletePath, undefined, other)).body.error.code).toBe('ServiceNotFound');
    expect((await api.get('/v2/service/acme/draw')).status).toBe(200);
  });
});

/** The clearing of another process on the same store. The test sets the time of the store. */
function otherProcess(nowMs = Date.now()) {
  const steering = { nowMs, beforeUpdate: async () => {} };
  const store = steered(api.store, {
    now: () => new Date(steering.nowMs),
    onCall: async ({ method, collection, run }) => {
      if (method === 'update' && collection === 'services') await steering.beforeUpdate();
      return await run();
    },
  });
  const queue = openInProcessQueue({ clock: systemClock, log: silentLog() });
  const purged: string[] = [];
  const deps = {
    store,
    queue,
    bus: api.bus,
    clock: new ManualClock(),
    log: silentLog(),
    purgeRepository: async (repository: string) => void purged.push(repository),
  };
  return { clearing: new ServiceClearing(deps), steering, queue, purged };
}

describe('after a crash', () => {
  /** Only the write of the request, as if the process crashed after it. */
  async function deleteHalfway(): Promise<void> {
    await api.store.update(services, 'acme/draw', (service) => withDeletion(service, new Date()));
  }

  test('a pass of another process stops the backends, also one that a connect inserted after the deletion', async () => {
    const placed = (await api.post(connectPath)).body.backend_id;
    await api.change(placed, (backend) => assign(backend, 'node-1'));
    const late = (await api.post(connectPath)).body.backend_id;
    await deleteHalfway();
    await api.store.update(backends, late, (backend) => ({ ...backend, createdAt: new Date(Date.now() + 1) }));
    const { clearing, queue, purged } = otherProcess(Date.now() + 1_000);
    const notified: string[] = [];
    const handlers = new JobHandlers().on(stopJob, async ({ backend }) => void notified.push(backend));
    await using _consumer = await queue.consume(nodeQueue('node-1'), handlers, { concurrency: 1 });
    await clearing.pass();
    await clearing.pass();
    expect(await statusOf(late)).toBe('terminated');
    expect((await api.store.get(backends, placed))?.stop).toBeDefined();
    await until(async () => notified.length > 0);
    expect(notified).toEqual([placed]);
    expect(purged).toEqual(['acme/draw', 'acme/draw']);
    await clearing[Symbol.asyncDispose]();
  });

  test('the document is deleted after its backends and connects in progress have ended', async () => {
    const { backend_id: id } = (await api.post(connectPath)).body;
    await api.change(id, becomeServing);
    await deleteHalfway();
    const { clearing, steering } = otherProcess(Date.now() + 120_000);
    await clearing.pass();
    expect(await api.store.get(services, 'acme/draw')).toBeDefined();
    await api.change(id, (backend) => ({ ...backend, live: false, status: 'terminated' }));
    steering.nowMs = Date.now() + 30_000;
    await clearing.pass();
    expect(await api.store.get(services, 'acme/draw')).toBeDefined();
    steering.nowMs = Date.now() + 61_000;
    await clearing.pass();
    expect(await api.store.get(services, 'acme/draw')).toBeUndefined();
    await clearing[Symbol.asyncDispose]();
  });

  test('a service that is deleted again during a pass stays marked as deleted', async () => {
    await deleteHalfway();
    const { clearing, steering } = otherProcess();
    await api.post('/v2/account/acme/service', { name: 'draw' });
    steering.beforeUpdate = async () => {
      await api.store.update(services, 'acme/draw', (service) => withDeletion(service, new Date()));
    };
    await clearing.pass();
    expect(await api.store.get(services, 'acme/draw')).toMatchObject({ deletedAt: expect.any(Date) });
    await clearing[Symbol.asyncDispose]();
  });
});
