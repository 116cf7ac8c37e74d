import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { openMongoStore } from '../../core/store/mongodb/mongodb.ts';
import { StoreError } from '../../core/store/store.ts';
import type { Store } from '../../core/store/store.ts';
import { describeOnMongo } from '../../test/kit/servers/mongodb-tests.ts';
import { testMongo } from '../../test/kit/servers/mongodb.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { accessTokenDocument, accessTokens, newSecret, revoke } from '../../model/access-token.ts';
import { assign, backends, becomeTerminated, newBackend } from '../../model/backend.ts';
import { modelCollections } from '../../model/collections.ts';
import { newBackendId } from '../../model/ids.ts';
import { claimKey, keyId, keys } from '../../model/key.ts';
import { nodes } from '../../model/node.ts';
import { newRoute, routes } from '../../model/route.ts';
import { proxies, traffic } from '../../model/traffic.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { Retention } from './retention.ts';
import { spawnRules } from '../testing/spawn-rules.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const historyMs = 10 * dayMs;
const log = silentLog();
const collections = [...modelCollections];

describe('Retention on SQLite', () => {
  declare(openTestStore);
});

await describeOnMongo('Retention', testMongo, (mongo) => {
  declare(async (parts) => {
    const { url, database } = parts.use(mongo.newDatabase());
    return await openMongoStore({ url, database, collections, log });
  });
});

function declare(open: (parts: AsyncDisposableStack) => Promise<Store>): void {
  const retentionTest = test.extend<{ fixture: Fixture }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads from the pattern what a fixture needs
    fixture: async ({}, use) => {
      await using parts = new AsyncDisposableStack();
      await use(fixtureOf(parts, parts.use(await open(parts))));
    },
  });

  retentionTest('a token that has ended stays in lists for 30 days', async ({ fixture }) => {
    const { store, clock, pass } = fixture;
    const tokenOf = (name: string) =>
      accessTokenDocument(newSecret('access'), { account: 'acme', name, scopes: ['read'] }, clock.now());
    const [kept, revoked] = [tokenOf('kept'), revoke(tokenOf('revoked'), clock.now())];
    for (const token of [kept, revoked]) await store.insert(accessTokens, token);
    await clock.advance(30 * dayMs);
    expect(await pass()).toMatchObject({ tokens: 0 });
    await clock.advance(1);
    expect(await pass()).toMatchObject({ tokens: 1 });
    expect(await store.get(accessTokens, kept.id)).toEqual(kept);
    expect(await store.get(accessTokens, revoked.id)).toBeUndefined();
  });

  retentionTest(
    'an ended backend is kept for the time of its history, then deleted with its routes',
    async ({ fixture }) => {
      const { store, clock, pass } = fixture;
      const [ended, live] = [await fixture.spawn(), await fixture.spawn()];
      const more = await fixture.connect(ended);
      await fixture.end(ended);
      await clock.advance(historyMs);
      await pass();
      expect(await store.get(backends, ended)).toMatchObject({ status: 'terminated' });
      await clock.advance(1);
      expect(await pass()).toMatchObject({ backends: 1 });
      expect(await store.get(backends, ended)).toBeUndefined();
      expect(await store.get(routes, more)).toBeUndefined();
      expect(await store.find(routes, { index: 'byBackend', equals: { backend: ended } })).toEqual([]);
      expect(await store.get(backends, live)).toBeDefined();
      expect(await store.find(routes, { index: 'byBackend', equals: { backend: live } })).toHaveLength(1);
    },
  );

  retentionTest('the traffic of a backend is deleted with it, and a proxy when it is dead', async ({ fixture }) => {
    const { store, clock, pass } = fixture;
    const backend = await fixture.end(await fixture.spawn());
    const counted = { requests: 1, receivedBytes: 1, sentBytes: 1, openConnections: 0, writtenAt: clock.now() };
    for (const id of ['one', 'two']) await store.insert(traffic, { id, backend, proxy: 'proxy', ...counted });
    await store.insert(proxies, { id: 'proxy', aliveUntil: new Date(clock.now().getTime() + 1) });
    expect(await pass()).toMatchObject({ proxies: 0 });
    await clock.advance(historyMs + 1);
    expect(await pass()).toMatchObject({ backends: 1, traffic: 2, proxies: 1 });
    expect(await store.find(traffic, { index: 'byBackend' })).toEqual([]);
  });

  retentionTest('the routes of a backend are deleted an hour after its end', async ({ fixture }) => {
    const { store, clock, pass } = fixture;
    const ended = await Promise.all(Array.from({ length: 150 }, async () => await fixture.end(await fixture.spawn())));
    await fixture.spawn();
    await clock.advance(hourMs - 1);
    expect(await pass()).toMatchObject({ routes: 0 });
    await clock.advance(1);
    expect(await pass()).toMatchObject({ routes: 150, backends: 0 });
    const more = await fixture.end(await fixture.spawn());
    await clock.advance(2 * dayMs);
    expect(await pass()).toMatchObject({ routes: 1 });
    expect(await store.find(routes, { index: 'byBackend' })).toHaveLength(1);
    for (const id of [...ended, more]) expect(await store.get(backends, id)).toBeDefined();
  });

  retentionTest('a route that moves to the next holder of its key during the pass is kept', async ({ fixture }) => {
    const { store, clock, pass } = fixture;
    const [ended, next] = [await fixture.spawn(), await fixture.spawn()];
    const moving = await fixture.connect(await fixture.end(ended));
    await clock.advance(hourMs);
    fixture.beforeDeletion(() => store.update(routes, moving, (route) => ({ ...route, backend: next })));
    expect(await pass()).toMatchObject({ routes: 1 });
    expect(await store.get(routes, moving)).toMatchObject({ backend: next });
  });

  retentionTest('a pass deletes more than one batch of backends and routes', async ({ fixture }) => {
    const { store, clock, pass } = fixture;
    const [first] = await Promise.all(
      Array.from({ length: 250 }, async () => await fixture.end(await fixture.spawn())),
    );
    await Promise.all(Array.from({ length: 250 }, async () => await fixture.connect(first ?? '')));
    await clock.advance(historyMs + 1);
    expect(await pass()).toEqual({
      backends: 250,
      routes: 500,
      traffic: 0,
      proxies: 0,
      keys: 0,
      nodes: 0,
      tokens: 0,
      attempts: 0,
      auditRecords: 0,
      cliLogins: 0,
      idTokens: 0,
    });
    expect(await store.find(backends, { index: 'byEnd' })).toEqual([]);
    expect(await store.find(routes, { index: 'byBackend' })).toEqual([]);
  });

  retentionTest('after a crash between any two deletions, the next pass deletes the rest', async ({ fixture }) => {
    const { store, clock, pass } = fixture;
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        const backend = await fixture.spawn();
        await fixture.connect(backend);
        await fixture.end(backend);
      }),
    );
    await clock.advance(historyMs + 1);
    for (let passes = 0; (await store.find(backends, { index: 'byEnd' })).length > 0; passes += 1) {
      expect(passes).toBeLessThan(20);
      fixture.failDeletionsAfter(1);
      // Another process, without the state of the first.
      await fixture
        .passOfOtherProcess()
        .catch((error: unknown) => expect(error).toMatchObject({ code: 'unavailable' }));
      await fixture.untilDeletionsEnd();
      for (const { backend } of await store.find(routes, { index: 'byBackend' })) {
        expect(await store.get(backends, backend)).toBeDefined();
      }
    }
    fixture.failDeletionsAfter(Infinity);
    expect(await pass()).toEqual({
      backends: 0,
      routes: 0,
      traffic: 0,
      proxies: 0,
      keys: 0,
      nodes: 0,
      tokens: 0,
      attempts: 0,
      auditRecords: 0,
      cliLogins: 0,
      idTokens: 0,
    });
    expect(await store.find(routes, { index: 'byBackend' })).toEqual([]);
  });

  retentionTest('passes that run at the same time delete everything once', async ({ fixture }) => {
    await Promise.all(Array.from({ length: 20 }, async () => await fixture.end(await fixture.spawn())));
    await fixture.clock.advance(historyMs + 1);
    const passes = await Promise.all([fixture.pass(), fixture.pass(), fixture.pass()]);
    expect(passes.reduce((sum, { backends: count }) => sum + count, 0)).toBe(20);
    expect(await fixture.store.find(routes, { index: 'byBackend' })).toEqual([]);
  });

  retentionTest(
    'a key that no live backend holds is deleted, and its next fencing token is higher',
    async ({ fixture }) => {
      const { store, clock, pass } = fixture;
      const [ended, live] = [await fixture.spawn(), await fixture.spawn()];
      const free = await fixture.claim('free', ended);
      await fixture.claim('held', live);
      await fixture.claim('claimed, and then its process died', newBackendId());
      await fixture.end(ended);
      await clock.advance(hourMs);
      expect(await pass()).toMatchObject({ keys: 0 });
      await clock.advance(2 * 60_000);
      expect(await pass()).toMatchObject({ keys: 2 });
      expect(await store.get(keys, free.id)).toBeUndefined();
      expect(await store.get(keys, keyId('acme', 'draw', 'held'))).toBeDefined();
      expect((await fixture.claim('free', await fixture.spawn())).fencingToken).toBeGreaterThan(free.fencingToken);
    },
  );

  retentionTest('a key is kept while its fencing token is ahead of the time', async ({ fixture }) => {
    const { store, clock, pass } = fixture;
    const ahead = { ...(await fixture.claim('ahead', newBackendId())), fencingToken: clock.now().getTime() + dayMs };
    await store.update(keys, ahead.id, () => ahead);
    await clock.advance(12 * hourMs);
    expect(await pass()).toMatchObject({ keys: 0 });
    await clock.advance(14 * hourMs);
    expect(await pass()).toMatchObject({ keys: 1 });
  });

  retentionTest(
    'a dead node is deleted after the time of the history, unless one of its backends has not ended',
    async ({ fixture }) => {
      const { store, clock, pass } = fixture;
      const startedAt = clock.now();
      for (const id of ['dead', 'busy', 'back']) {
        const leaseUntil = new Date(startedAt.getTime() + 60_000);
        await store.insert(nodes, { id, cluster: 'main', leaseUntil, startedAt, engineVersion: '28' });
      }
      const running = await fixture.spawn('busy');
      await clock.advance(31 * dayMs);
      await store.update(nodes, 'back', (node) => ({ ...node, leaseUntil: clock.now() }));
      expect(await pass()).toMatchObject({ nodes: 1 });
      expect((await store.find(nodes, { index: 'byCluster' })).map(({ id }) => id)).toEqual(['back', 'busy']);
      await fixture.end(running);
      expect(await pass()).toMatchObject({ nodes: 1 });
    },
  );

  retentionTest('passes run periodically, and count their deletions', async ({ fixture }) => {
    await fixture.end(await fixture.spawn());
    await fixture.clock.advance(historyMs + 1);
    await fixture.timers.advance(60_000);
    await expect.poll(() => fixture.deletedBackends()).toBe(1);
  });
}

type Fixture = ReturnType<typeof fixtureOf>;

function fixtureOf(parts: AsyncDisposableStack, opened: Store) {
  // Two clocks, so that no pass starts while the test advances by a month.
  const [clock, timers] = [new ManualClock(new Date()), new ManualClock()];
  const deletions: Promise<unknown>[] = [];
  let deletionsLeft = Infinity;
  let beforeDeletion: (() => Promise<unknown>) | undefined;
  const store = steered(opened, {
    now: () => clock.now(),
    onCall: async ({ method, run }) => {
      if (method !== 'delete') return await run();
      await beforeDeletion?.();
      deletionsLeft -= 1;
      if (deletionsLeft < 0) throw new StoreError('unavailable', 'The process has died');
      const deletion = run();
      deletions.push(deletion);
      return await deletion;
    },
  });
  const metrics = new Registry();
  const rules = { ...spawnRules, backendHistorySeconds: historyMs / 1000 };
  const retention = parts.use(new Retention({ store, clock: timers, log, metrics, rules }));
  const connect = async (backend: string) => {
    const route = newRoute(randomUUID(), { backend });
    await store.insert(routes, route);
    return route.id;
  };
  return {
    store,
    clock,
    timers,
    connect,
    pass: async () => await retention.deleteExpired(),
    passOfOtherProcess: async () => {
      await using another = new Retention({ store, clock: timers, log, metrics: new Registry(), rules });
      await another.deleteExpired();
    },
    beforeDeletion: (change: () => Promise<unknown>) => (beforeDeletion = change),
    failDeletionsAfter: (count: number) => (deletionsLeft = count),
    untilDeletionsEnd: async () => await Promise.allSettled(deletions.splice(0)),
    deletedBackends: async () => {
      const { values } =
        (await metrics.getMetricsAsJSON()).find(({ name }) => name === 'berth_deleted_documents_total') ?? {};
      return values?.find(({ labels }) => labels['what'] === 'backends')?.value;
    },
    spawn: async (node = 'node-1') => {
      const id = newBackendId();
      const backend = newBackend(backendPlan({ id }), clock.now());
      await store.insert(backends, assign(backend, node));
      await connect(id);
      return id;
    },
    end: async (id: string) => {
      await store.update(backends, id, (current) =>
        becomeTerminated(current, { kind: null, reason: null, exitCode: 0 }, clock.now()),
      );
      return id;
    },
    claim: async (name: string, backend: string) => {
      const key = claimKey(undefined, keyId('acme', 'draw', name), backend, clock.now());
      await store.insert(keys, key);
      return key;
    },
  };
}
