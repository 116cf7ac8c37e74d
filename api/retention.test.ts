import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../core/clock/manual-clock.ts';
import { silentLog } from '../core/log/log.ts';
import { openMongoStore } from '../core/store/mongodb.ts';
import { openSqliteStore } from '../core/store/sqlite.ts';
import { StoreError } from '../core/store/store.ts';
import type { Collection, Store, StoredDocument } from '../core/store/store.ts';
import { describeOnMongo } from '../test/kit/mongodb-tests.ts';
import { testMongo } from '../test/kit/mongodb.ts';
import { WatchedStore } from '../test/kit/watched-store.ts';
import { temporaryFolder } from '../test/suites/temporary-folder.ts';
import { assign, backends, end, newBackend } from '../model/backend.ts';
import { modelCollections } from '../model/collections.ts';
import { newBackendId, newToken } from '../model/ids.ts';
import { claimKey, keyId, keys } from '../model/key.ts';
import { nodes } from '../model/node.ts';
import { newRoute, routes } from '../model/route.ts';
import { Retention } from './retention.ts';
import { spawnRules } from './testing/spawn-rules.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const historyMs = 10 * dayMs;
const log = silentLog();
const collections = [...modelCollections];

describe('Retention on SQLite', () => {
  declare(async (parts) => {
    const folder = parts.use(await temporaryFolder());
    return await openSqliteStore({ folder: folder.path, collections, log });
  });
});

await describeOnMongo('Retention', testMongo, (mongo) => {
  declare(async (parts) => {
    const { url, database } = parts.use(mongo.newDatabase());
    return await openMongoStore({ url, database, collections, log });
  });
});

function declare(open: (parts: AsyncDisposableStack) => Promise<Store>): void {
  const retentionTest = test.extend<{ house: House }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads from the pattern what a fixture needs
    house: async ({}, use) => {
      await using parts = new AsyncDisposableStack();
      await use(houseOf(parts, parts.use(await open(parts))));
    },
  });

  retentionTest('an ended backend stays for its history, then goes with its routes', async ({ house }) => {
    const { store, clock, pass } = house;
    const [ended, live] = [await house.spawn(), await house.spawn()];
    const more = await house.connect(ended);
    await house.end(ended);
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
  });

  retentionTest('the routes of an ended backend go soon, since they lead nowhere', async ({ house }) => {
    const { store, clock, pass } = house;
    const ended = await Promise.all(Array.from({ length: 150 }, async () => await house.end(await house.spawn())));
    await house.spawn();
    await clock.advance(hourMs - 1);
    expect(await pass()).toMatchObject({ routes: 0 });
    await clock.advance(1);
    expect(await pass()).toMatchObject({ routes: 150, backends: 0 });
    const more = await house.end(await house.spawn());
    await clock.advance(2 * dayMs);
    expect(await pass()).toMatchObject({ routes: 1 });
    expect(await store.find(routes, { index: 'byBackend' })).toHaveLength(1);
    for (const id of [...ended, more]) expect(await store.get(backends, id)).toBeDefined();
  });

  retentionTest('more than a batch goes in one pass, and its routes too', async ({ house }) => {
    const { store, clock, pass } = house;
    const [first] = await Promise.all(Array.from({ length: 250 }, async () => await house.end(await house.spawn())));
    await Promise.all(Array.from({ length: 250 }, async () => await house.connect(first ?? '')));
    await clock.advance(historyMs + 1);
    expect(await pass()).toEqual({ backends: 250, routes: 500, keys: 0, nodes: 0 });
    expect(await store.find(backends, { index: 'byEnd' })).toEqual([]);
    expect(await store.find(routes, { index: 'byBackend' })).toEqual([]);
  });

  retentionTest(
    'a process that dies between any two deletions leaves nothing that the next pass misses',
    async ({ house }) => {
      const { store, clock, pass } = house;
      await Promise.all(
        Array.from({ length: 5 }, async () => {
          const backend = await house.spawn();
          await house.connect(backend);
          await house.end(backend);
        }),
      );
      await clock.advance(historyMs + 1);
      for (let passes = 0; (await store.find(backends, { index: 'byEnd' })).length > 0; passes += 1) {
        expect(passes).toBeLessThan(20);
        store.deletionsLeft = 1;
        // Another process, which remembers nothing.
        await house.passOfAnother().catch((error: unknown) => expect(error).toMatchObject({ code: 'unavailable' }));
        await store.settled();
        for (const { backend } of await store.find(routes, { index: 'byBackend' })) {
          expect(await store.get(backends, backend)).toBeDefined();
        }
      }
      store.deletionsLeft = Infinity;
      expect(await pass()).toEqual({ backends: 0, routes: 0, keys: 0, nodes: 0 });
      expect(await store.find(routes, { index: 'byBackend' })).toEqual([]);
    },
  );

  retentionTest('passes that run at the same time delete everything once', async ({ house }) => {
    await Promise.all(Array.from({ length: 20 }, async () => await house.end(await house.spawn())));
    await house.clock.advance(historyMs + 1);
    const passes = await Promise.all([house.pass(), house.pass(), house.pass()]);
    expect(passes.reduce((sum, { backends: count }) => sum + count, 0)).toBe(20);
    expect(await house.store.find(routes, { index: 'byBackend' })).toEqual([]);
  });

  retentionTest('a key that no live backend holds goes, and its next fencing token is higher', async ({ house }) => {
    const { store, clock, pass } = house;
    const [ended, live] = [await house.spawn(), await house.spawn()];
    const free = await house.claim('free', ended);
    await house.claim('held', live);
    await house.claim('claimed, and then its process died', newBackendId());
    await house.end(ended);
    await clock.advance(hourMs);
    expect(await pass()).toMatchObject({ keys: 0 });
    await clock.advance(2 * 60_000);
    expect(await pass()).toMatchObject({ keys: 2 });
    expect(await store.get(keys, free.id)).toBeUndefined();
    expect(await store.get(keys, keyId('acme', 'draw', 'held'))).toBeDefined();
    expect((await house.claim('free', await house.spawn())).fencingToken).toBeGreaterThan(free.fencingToken);
  });

  retentionTest('a key stays while its fencing token is ahead of the time', async ({ house }) => {
    const { store, clock, pass } = house;
    const ahead = { ...(await house.claim('ahead', newBackendId())), fencingToken: clock.now().getTime() + dayMs };
    await store.update(keys, ahead.id, () => ahead);
    await clock.advance(12 * hourMs);
    expect(await pass()).toMatchObject({ keys: 0 });
    await clock.advance(14 * hourMs);
    expect(await pass()).toMatchObject({ keys: 1 });
  });

  retentionTest(
    'a node that is gone for as long goes, unless a backend on it is still to be ended',
    async ({ house }) => {
      const { store, clock, pass } = house;
      const startedAt = clock.now();
      for (const id of ['gone', 'owing', 'back']) {
        const leaseUntil = new Date(startedAt.getTime() + 60_000);
        await store.insert(nodes, { id, cluster: 'main', leaseUntil, startedAt, engineVersion: '28' });
      }
      const owed = await house.spawn('owing');
      await clock.advance(31 * dayMs);
      await store.update(nodes, 'back', (node) => ({ ...node, leaseUntil: clock.now() }));
      expect(await pass()).toMatchObject({ nodes: 1 });
      expect((await store.find(nodes, { index: 'byCluster' })).map(({ id }) => id)).toEqual(['back', 'owing']);
      await house.end(owed);
      expect(await pass()).toMatchObject({ nodes: 1 });
    },
  );

  retentionTest('passes run by themselves, and count what they delete', async ({ house }) => {
    await house.end(await house.spawn());
    await house.clock.advance(historyMs + 1);
    await house.timers.advance(60_000);
    await expect.poll(() => house.deletedBackends()).toBe(1);
  });
}

/** A store that fails after a number of deletions. */
class MortalStore extends WatchedStore {
  deletionsLeft = Infinity;
  readonly #underWay: Promise<boolean>[] = [];

  override async delete<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    when?: (current: T) => boolean,
  ): Promise<boolean> {
    this.deletionsLeft -= 1;
    if (this.deletionsLeft < 0) throw new StoreError('unavailable', 'The process has died');
    const deletion = super.delete(collection, id, when);
    this.#underWay.push(deletion);
    return await deletion;
  }

  /** Resolves when the deletions that were begun are over. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.splice(0));
  }
}

type House = ReturnType<typeof houseOf>;

function houseOf(parts: AsyncDisposableStack, opened: Store) {
  // Apart, so that no pass begins by itself while a month goes by.
  const [clock, timers] = [new ManualClock(new Date()), new ManualClock()];
  const store = new MortalStore(opened, clock);
  const metrics = new Registry();
  const rules = { ...spawnRules, backendHistorySeconds: historyMs / 1000 };
  const retention = parts.use(new Retention({ store, clock: timers, log, metrics, rules }));
  const connect = async (backend: string) => {
    const route = newRoute(newToken(), { backend });
    await store.insert(routes, route);
    return route.id;
  };
  return {
    store,
    clock,
    timers,
    connect,
    pass: async () => await retention.deleteOutlived(),
    passOfAnother: async () => {
      await using another = new Retention({ store, clock: timers, log, metrics: new Registry(), rules });
      await another.deleteOutlived();
    },
    deletedBackends: async () => {
      const { values } =
        (await metrics.getMetricsAsJSON()).find(({ name }) => name === 'berth_deleted_documents_total') ?? {};
      return values?.find(({ labels }) => labels['what'] === 'backends')?.value;
    },
    spawn: async (node = 'node-1') => {
      const plan = {
        account: 'acme',
        service: 'draw',
        environment: 'default',
        cluster: 'main',
        imageDigest: 'sha256:0',
      };
      const id = newBackendId();
      const backend = newBackend({ ...plan, id, limits: {}, maxIdleSeconds: 1, port: 8080 }, clock.now());
      await store.insert(backends, assign(backend, node));
      await connect(id);
      return id;
    },
    end: async (id: string) => {
      await store.update(backends, id, (current) =>
        end(current, { kind: null, reason: null, exitCode: 0 }, clock.now()),
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
