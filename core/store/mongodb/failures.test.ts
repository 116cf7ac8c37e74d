// Takes about 30 s
/** A database that is unavailable, hangs, or whose answers are lost. */
import { expect, test } from 'vitest';
import { openRelay } from '../../../test/kit/servers/mongodb-relay.ts';
import { describeOnMongo } from '../../../test/kit/servers/mongodb-tests.ts';
import { stoppableMongo } from '../../../test/kit/servers/mongodb.ts';
import { silentLog } from '../../log/log.ts';
import { openMongoStore } from './mongodb.ts';
import type { Collection, Store } from '../store.ts';

interface Thing {
  readonly id: string;
  readonly count: number;
}

const things: Collection<Thing, 'byCount'> = { name: 'things', indexes: { byCount: ['count'] } };
const collections = [things];
const log = silentLog();
const add = (thing: Thing) => ({ ...thing, count: thing.count + 1 });

await describeOnMongo('MongoDB, failing', stoppableMongo, (mongo) => {
  const everything = (store: Store): Record<string, () => Promise<unknown>> => ({
    ping: async () => await store.ping(),
    now: async () => await store.now(),
    get: async () => await store.get(things, 'one'),
    find: async () => await store.find(things, { index: 'byCount' }),
    findIds: async () => await store.findIds(things, { index: 'byCount' }),
    insert: async () => await store.insert(things, { id: 'two', count: 1 }),
    update: async () => await store.update(things, 'one', add),
    delete: async () => await store.delete(things, 'three'),
  });

  test(
    'A store reports an unavailable server while it is unavailable, and works when it is back',
    { timeout: 120_000 },
    async () => {
      await using database = mongo.newDatabase();
      await using store = await openMongoStore({ ...database, collections, log });
      await store.insert(things, { id: 'one', count: 1 });
      await mongo.stop();
      const { now: _now, ...asking } = everything(store);
      // All of them end before the server is back.
      await Promise.all(Object.values(asking).map(async (ask) => await expectUnavailable(ask())));
      await expectUnavailable(openMongoStore({ ...database, collections, log }));
      await mongo.start();
      await expect.poll(async () => await store.get(things, 'one')).toBeDefined();
      for (const [name, ask] of Object.entries(everything(store))) {
        if (name !== 'insert') await ask();
      }
      expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 2 });
    },
  );

  test('A restart of the server between two operations fails neither', { timeout: 120_000 }, async () => {
    await using database = mongo.newDatabase();
    await using store = await openMongoStore({ ...database, collections, log });
    await store.insert(things, { id: 'one', count: 1 });
    for (const ask of Object.values(everything(store))) {
      await mongo.stop();
      await mongo.start();
      await ask();
    }
    expect(await store.get(things, 'two')).toBeDefined();
  });

  test('Operations on a server that hangs fail, and work when it answers again', { timeout: 120_000 }, async () => {
    await using database = mongo.newDatabase();
    await using store = await openMongoStore({ ...database, collections, log });
    await store.insert(things, { id: 'one', count: 1 });
    const thaw = await mongo.freeze();
    try {
      // All of them end while the server still hangs.
      await Promise.all([
        expectUnavailable(store.get(things, 'one')),
        expectUnavailable(store.update(things, 'one', add)),
        expectUnavailable(store.insert(things, { id: 'two', count: 1 })),
      ]);
    } finally {
      thaw();
    }
    await expect.poll(async () => (await store.get(things, 'one'))?.count).toBeDefined();
  });

  test('A write whose answer is lost happens once, and succeeds', async () => {
    await using database = mongo.newDatabase();
    await using relay = await openRelay(mongo.url);
    await using store = await openMongoStore({ ...database, url: relay.url, collections, log });
    relay.dropAnswerTo('insert');
    await store.insert(things, { id: 'one', count: 1 });
    relay.dropAnswerTo('update');
    expect(await store.update(things, 'one', add)).toStrictEqual({ id: 'one', count: 2 });
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 2 });
    await expect(store.insert(things, { id: 'one', count: 9 })).rejects.toMatchObject({ code: 'duplicate' });
    expect(relay.dropped).toBe(2);
  });

  test('Batched inserts whose answer is lost succeed, except those whose ID exists', async () => {
    await using database = mongo.newDatabase();
    await using relay = await openRelay(mongo.url);
    await using store = await openMongoStore({ ...database, url: relay.url, collections, log });
    await store.insert(things, { id: '3', count: 9 });
    relay.dropAnswerTo('insert');
    const ids = ['1', '2', '3', '4'];
    const inserts = await Promise.allSettled(ids.map(async (id) => await store.insert(things, { id, count: 1 })));
    expect(inserts.map(({ status }) => status)).toStrictEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(inserts[2]).toMatchObject({ reason: { code: 'duplicate' } });
    const counts = await Promise.all(ids.map(async (id) => (await store.get(things, id))?.count));
    expect(counts).toStrictEqual([1, 1, 9, 1]);
    expect(relay.dropped).toBe(1);
  });

  test('A deletion whose answer is lost happens; if the store cannot determine that, it reports `unavailable`', async () => {
    await using database = mongo.newDatabase();
    await using relay = await openRelay(mongo.url);
    await using store = await openMongoStore({ ...database, url: relay.url, collections, log });
    await store.insert(things, { id: 'one', count: 1 });
    relay.dropAnswerTo('delete');
    const deleted = await store.delete(things, 'one').catch((error: unknown) => error);
    if (deleted !== true) expect(deleted).toMatchObject({ name: 'StoreError', code: 'unavailable' });
    expect(await store.get(things, 'one')).toBeUndefined();
    expect(relay.dropped).toBe(1);
  });
});

async function expectUnavailable(operation: Promise<unknown>): Promise<void> {
  const error: unknown = await operation.then(
    () => 'no error',
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: 'StoreError', code: 'unavailable' });
}
