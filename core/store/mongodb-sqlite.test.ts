/** The two drivers of the store return the same for the same input. */
import { expect, test } from 'vitest';
import { describeOnMongo } from '../../test/kit/servers/mongodb-tests.ts';
import { testMongo } from '../../test/kit/servers/mongodb.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../log/log.ts';
import { openMongoStore } from './mongodb/mongodb.ts';
import { openSqliteStore } from './sqlite/sqlite.ts';
import type { Collection, IndexValue } from './store.ts';

interface Thing {
  readonly id: string;
  readonly rank?: IndexValue;
  readonly content?: unknown;
}

const things: Collection<Thing, 'byRank'> = { name: 'things', indexes: { byRank: ['rank'] } };
const log = silentLog();
const documents = 300;

await describeOnMongo('SQLite and MongoDB', testMongo, (mongo) => {
  test('SQLite and MongoDB return the same documents, in the same order', async () => {
    await using folder = await temporaryFolder();
    await using database = mongo.newDatabase();
    await using sqlite = await openSqliteStore({ folder: folder.path, collections: [things], log });
    await using mongodb = await openMongoStore({ ...database, collections: [things], log });
    const random = randomFrom(20_26);
    for (let i = 0; i < documents; i += 1) {
      const thing = { id: `${text(random)}${i}`, rank: scalar(random), content: value(random, 4) } as Thing;
      await Promise.all([sqlite.insert(things, thing), mongodb.insert(things, thing)]);
      const content = value(random, 3);
      const change = (current: Thing): Thing => ({ ...current, content });
      const updated = await Promise.all([
        sqlite.update(things, thing.id, change),
        mongodb.update(things, thing.id, change),
      ]);
      expect(updated[1]).toStrictEqual(updated[0]);
      expect(await mongodb.get(things, thing.id)).toStrictEqual(await sqlite.get(things, thing.id));
    }
    for (const order of ['ascending', 'descending'] as const) {
      const query = { index: 'byRank', order } as const;
      expect(await mongodb.find(things, query)).toStrictEqual(await sqlite.find(things, query));
    }
  });

  test('SQLite and MongoDB reject the same documents, with the same messages', async () => {
    await using folder = await temporaryFolder();
    await using database = mongo.newDatabase();
    await using sqlite = await openSqliteStore({ folder: folder.path, collections: [things], log });
    await using mongodb = await openMongoStore({ ...database, collections: [things], log });
    const rejected: unknown[] = [
      { id: '' },
      { id: 1 },
      { id: 'one', rank: [] },
      { id: 'one', content: Number.NaN },
      { id: 'one', content: new Map() },
      { id: 'one', content: 1n },
      { id: 'one', content: { at: new Date(Number.NaN) } },
    ];
    for (const document of rejected) {
      const errors = await Promise.all(
        [sqlite, mongodb].map(async (store) => await store.insert(things, document as Thing).catch((e: unknown) => e)),
      );
      expect(errors[0]).toBeInstanceOf(TypeError);
      expect(errors[1]).toStrictEqual(errors[0]);
    }
  });
});

/** Numbers from 0 to 1, the same ones each time (a linear congruential generator). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function oneOf<T>(random: () => number, items: readonly T[]): T {
  return items[Math.floor(random() * items.length)] as T;
}

function text(random: () => number): string {
  const letters = ['a', 'Z', '9', '.', '$', '%', '\0', ' ', 'é', '日', '\uffff', '😀', '_', '"'];
  return Array.from({ length: Math.floor(random() * 4) }, () => oneOf(random, letters)).join('');
}

function scalar(random: () => number): IndexValue | undefined {
  return oneOf<() => IndexValue | undefined>(random, [
    () => undefined,
    () => null,
    () => Math.floor(random() * 10),
    () => (random() - 0.5) * 10 ** Math.floor(random() * 40 - 20),
    () => Math.floor(random() * 2 ** 53),
    () => -0,
    () => text(random),
    () => random() < 0.5,
    () => new Date(Math.floor((random() - 0.2) * 4e12)),
  ])();
}

function value(random: () => number, depth: number): unknown {
  if (depth === 0 || random() < 0.3) return scalar(random);
  const count = Math.floor(random() * 5);
  return oneOf<() => unknown>(random, [
    () => Array.from({ length: count }, () => value(random, depth - 1) ?? null),
    () => Object.fromEntries(Array.from({ length: count }, () => [text(random), value(random, depth - 1)])),
    () => Uint8Array.from({ length: count }, () => Math.floor(random() * 256)),
    () => Buffer.from(text(random)),
  ])();
}
