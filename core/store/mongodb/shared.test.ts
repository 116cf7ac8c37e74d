/** A database that several processes use, and whose indexes an operator has changed. */
import { MongoClient } from 'mongodb';
import { expect, test } from 'vitest';
import { describeOnMongo } from '../../../test/kit/servers/mongodb-tests.ts';
import { testMongo } from '../../../test/kit/servers/mongodb.ts';
import { silentLog } from '../../log/log.ts';
import { connectMongo } from './client.ts';
import { insertRecord, recordsOf, removeRecord, replaceRecord } from './records.ts';
import type { MongoRecord } from './records.ts';
import { openMongoStore } from './mongodb.ts';
import type { AnyCollection } from '../query-plan.ts';
import type { Collection } from '../store.ts';

interface Thing {
  readonly id: string;
  readonly count: number;
}

const things: Collection<Thing> = { name: 'things', indexes: {} };
const add = (thing: Thing) => ({ ...thing, count: thing.count + 1 });
const log = silentLog();

await describeOnMongo('MongoDB, shared', testMongo, (mongo) => {
  test('Stores on one database lose none of each other’s updates', async () => {
    await using database = mongo.newDatabase();
    const open = async () => await openMongoStore({ ...database, collections: [things], log });
    await using owned = new AsyncDisposableStack();
    const stores = await Promise.all([1, 2, 3, 4].map(async () => owned.use(await open())));
    await stores[0]?.insert(things, { id: 'one', count: 0 });
    const updates = stores.flatMap((store) =>
      Array.from({ length: 25 }, async () => await store.update(things, 'one', add)),
    );
    const counts = (await Promise.all(updates)).map((thing) => thing?.count);
    expect(new Set(counts).size).toBe(100);
    expect(await stores[1]?.get(things, 'one')).toStrictEqual({ id: 'one', count: 100 });
  });

  test('A document that was deleted and inserted again has another version', async () => {
    await using database = mongo.newDatabase();
    await using client = new MongoClient(database.url);
    const collection = client.db(database.database).collection<MongoRecord>('things');
    const records = recordsOf(collection);
    await insertRecord(records, 'one', { count: 1 });
    const read = (await collection.findOne({ _id: 'one' })) as MongoRecord;
    expect(await removeRecord(records, read)).toBe(true);
    expect(await insertRecord(records, 'one', { count: 1 })).toBe(true);
    expect(await replaceRecord(records, read, { count: 2 })).toBe(false);
    expect(await removeRecord(records, read)).toBe(false);
    expect(await collection.findOne({ _id: 'one' })).toMatchObject({ document: { count: 1 } });
  });

  test('Declared indexes are created, undeclared indexes of Berth removed, and other indexes kept', async () => {
    await using database = mongo.newDatabase();
    await using client = new MongoClient(database.url);
    const collection = client.db(database.database).collection('things');
    await collection.createIndex({ 'document.colour': 1 }, { name: 'by-hand' });
    await collection.createIndex({ 'document.a': 1, _id: 1 }, { name: 'berth:a', unique: true });
    const declare = async (indexes: AnyCollection['indexes']) => {
      await using _store = await openMongoStore({ ...database, collections: [{ name: 'things', indexes }], log });
      return Object.fromEntries(
        (await collection.listIndexes().toArray()).map(({ name, key, unique }) => [name, unique ? 'unique' : key]),
      );
    };
    const alwaysThere = { _id_: { _id: 1 }, 'by-hand': { 'document.colour': 1 } };
    expect(await declare({ byA: ['a'], alsoByA: ['a'], byAB: ['a', 'b'] })).toStrictEqual({
      ...alwaysThere,
      'berth:a': { 'document.a': 1, _id: 1 },
      'berth:a,b': { 'document.a': 1, 'document.b': 1, _id: 1 },
    });
    expect(await declare({ byAB: ['b', 'a'] })).toStrictEqual({
      ...alwaysThere,
      'berth:b,a': { 'document.b': 1, 'document.a': 1, _id: 1 },
    });
    expect(await declare({})).toStrictEqual(alwaysThere);
  });

  test('A partial index replaces a full index of the same fields, and vice versa', async () => {
    await using database = mongo.newDatabase();
    await using client = new MongoClient(database.url);
    const declare = async (indexes: AnyCollection['indexes']) => {
      await using _store = await openMongoStore({ ...database, collections: [{ name: 'things', indexes }], log });
      const found = await client.db(database.database).collection('things').listIndexes().toArray();
      return found.filter(({ name }) => name === 'berth:a,b').map((index) => index['partialFilterExpression']);
    };
    const partial = { byA: { fields: ['a', 'b'], omitsNull: true } } as const;
    expect(await declare({ byA: ['a', 'b'] })).toStrictEqual([undefined]);
    expect(await declare(partial)).toStrictEqual([{ 'document.a': { $exists: true } }]);
    expect(await declare(partial)).toStrictEqual([{ 'document.a': { $exists: true } }]);
    expect(await declare({ byA: ['a', 'b'] })).toStrictEqual([undefined]);
  });

  test('The URL cannot change the durability of writes or the source of reads', async () => {
    const url = new URL(mongo.url);
    url.search = 'w=1&journal=false&readConcernLevel=available&readPreference=nearest';
    const { client, db } = await connectMongo({ url: url.href });
    await using _client = client;
    expect(db.collection('things')).toMatchObject({
      writeConcern: { w: 'majority', journal: true },
      readConcern: { level: 'local' },
      readPreference: { mode: 'primary' },
    });
  });

  test('The database is the one in the options, else the one in the URL, else the default', async () => {
    await using database = mongo.newDatabase();
    const url = new URL(mongo.url);
    url.pathname = `/${database.database}`;
    {
      await using store = await openMongoStore({ url: url.href, collections: [things], log });
      await store.insert(things, { id: 'one', count: 1 });
    }
    await using store = await openMongoStore({ ...database, collections: [things], log });
    expect(await store.get(things, 'one')).toBeDefined();
  });
});
