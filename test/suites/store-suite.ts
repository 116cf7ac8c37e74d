/** What every driver of the store must do. */
import { describe, expect, test } from 'vitest';
import type { TestAPI } from 'vitest';
import type { AnyCollection } from '../../core/store/query-plan.ts';
import { StoreError } from '../../core/store/store.ts';
import type { Collection, IndexValue, Scan, Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { claimKey, keys } from '../../model/key.ts';

/** Data that outlives the stores opened on it. */
export interface StoreData extends AsyncDisposable {
  open(collections: readonly AnyCollection[]): Promise<Store>;
}

interface Thing {
  readonly id: string;
  readonly group?: IndexValue;
  readonly rank?: IndexValue;
  readonly count?: number;
  readonly content?: unknown;
}

const things: Collection<Thing, 'byGroup' | 'byRank'> = {
  name: 'things',
  indexes: { byGroup: ['group', 'rank'], byRank: ['rank'] },
};

const collections = [things, keys];

/** Values in the order of every index. */
const inOrder: IndexValue[] = [
  null,
  -1.5e300,
  -1,
  0,
  0.1,
  0.30000000000000004,
  1,
  10,
  2 ** 53 - 1,
  87813263637910020,
  1e21,
  '',
  '\0',
  '$',
  '10',
  '9',
  'Z',
  'a',
  'a\0b',
  'ab',
  'é',
  '\uffff',
  '😀',
  false,
  true,
  new Date('0000-01-01T00:00:00.000Z'),
  new Date('1969-12-31T23:59:59.999Z'),
  new Date('2026-01-01T00:00:00.000Z'),
  new Date('2026-01-01T00:00:00.500Z'),
  new Date('9999-12-31T23:59:59.999Z'),
];

/** Describes a driver; `create` makes new, empty data. */
export function describeStore(name: string, create: () => Promise<StoreData>): void {
  const storeTest = test.extend<{ store: Store }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads from the pattern what a fixture needs
    store: async ({}, use) => {
      await using data = await create();
      await using store = await data.open(collections);
      await use(store);
    },
  });
  describe(`${name}: documents`, () => {
    describeDocuments(storeTest);
  });
  describe(`${name}: contention`, () => {
    describeContention(storeTest);
  });
  describe(`${name}: queries`, () => {
    describeQueries(storeTest);
  });
  describe(`${name}: scans`, () => {
    describeScans(storeTest);
  });
  describe(`${name}: closing`, () => {
    describeClosing(create);
  });
}

type StoreTest = TestAPI<{ store: Store }>;

function describeDocuments(storeTest: StoreTest): void {
  storeTest('answers, and tells its time', async ({ store }) => {
    await store.ping();
    const before = Date.now();
    const now = await store.now();
    expect(Math.abs(now.getTime() - before)).toBeLessThan(5_000);
  });

  storeTest('knows what was inserted, and nothing else', async ({ store }) => {
    await store.insert(things, { id: 'one', group: 'a' });
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', group: 'a' });
    expect(await store.get(things, 'two')).toBeUndefined();
    expect(await store.get(keys, 'one')).toBeUndefined();
  });

  storeTest('refuses a second document with the same ID and keeps the first', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    await expectCode(store.insert(things, { id: 'one', count: 2 }), 'duplicate');
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 1 });
  });

  storeTest('lets one of many inserts of an ID win', async ({ store }) => {
    const inserts = Array.from({ length: 20 }, (_, count) => store.insert(things, { id: 'one', count }));
    const outcomes = await Promise.allSettled(inserts);
    const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: winner });
  });

  storeTest('gives back whatever data it was given', async ({ store }) => {
    const content = {
      texts: ['', 'naïve', '日本語', '😀 \u0000 \u2028 "\\', '\uffff'],
      numbers: [0, -1, 1.5, 2 ** 31, 2 ** 53 - 1, -(2 ** 53 - 1), 5e-324, 1.7976931348623157e308, 1e21],
      nothing: null,
      yes: true,
      dates: { past: new Date(-1), nested: [[new Date('2026-02-03T04:05:06.789Z')]], whole: new Date(0) },
      bytes: [new Uint8Array(), Uint8Array.of(0, 255, 128)],
      'a.b': 1,
      '': 'empty key',
      $set: { $date: '2026-01-01T00:00:00Z', $$date: 2 },
      $date: 'not a date',
      $binary: { base64: 'AA==', subType: '00' },
      $numberLong: '5',
      $oid: 'x',
      ['__proto__']: { polluted: true },
      constructor: 'x',
      toJSON: 'text',
    };
    await store.insert(things, { id: 'one', content });
    const found = await store.get(things, 'one');
    expect(found).toStrictEqual({ id: 'one', content });
    expect(found?.content).toHaveProperty(['__proto__'], { polluted: true });
    expect((found as { polluted?: unknown }).polluted).toBeUndefined();
  });

  storeTest('takes any text as an ID', async ({ store }) => {
    for (const id of ['a/b', 'x:y@sha256:00', "'; --", '日本', 'a\0b', '$', ' ']) {
      await store.insert(things, { id, content: id });
      expect(await store.get(things, id)).toStrictEqual({ id, content: id });
    }
  });

  storeTest('gives bytes back as Uint8Array, Buffers too', async ({ store }) => {
    await store.insert(things, { id: 'one', content: Buffer.from('abc') });
    expect((await store.get(things, 'one'))?.content).toStrictEqual(new Uint8Array([97, 98, 99]));
  });

  storeTest('leaves out fields that are undefined', async ({ store }) => {
    await store.insert(things, { id: 'one', content: { a: undefined, b: 1 } });
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', content: { b: 1 } });
  });

  storeTest('refuses what it could not give back, and names the place', async ({ store }) => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    const unfit: unknown[] = [
      () => 1,
      Symbol('x'),
      10n,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      new Date(Number.NaN),
      new Date(8.64e15),
      new Map(),
      new Set(),
      new URL('http://localhost'),
      /x/,
      [undefined],
      '\ud800',
      { '\ud800': 1 },
      { [Symbol('x')]: 1 },
      new Float64Array(1),
      circle,
    ];
    for (const value of unfit) {
      const insert = store.insert(things, { id: 'one', content: { deep: [value] } });
      await expect(insert).rejects.toThrow(TypeError);
      await expect(insert).rejects.toThrow('content.deep[0]');
    }
    expect(await store.get(things, 'one')).toBeUndefined();
  });

  storeTest('refuses objects in indexed fields', async ({ store }) => {
    const rank = { a: 1 } as unknown as IndexValue;
    await expect(store.insert(things, { id: 'one', rank })).rejects.toThrow(/"rank" of "things" is indexed/);
  });

  storeTest('gives every reader a document of its own', async ({ store }) => {
    const content = { list: [1] };
    await store.insert(things, { id: 'one', content });
    content.list.push(2);
    const found = (await store.get(things, 'one')) as { content: { list: number[] } };
    found.content.list.push(3);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', content: { list: [1] } });
  });

  storeTest('updates by a function, and answers with what stands then', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    const updated = await store.update(things, 'one', (thing) => ({ ...thing, count: 2, content: undefined }));
    expect(updated).toStrictEqual({ id: 'one', count: 2 });
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 2 });
  });

  storeTest('does not update what is not there', async ({ store }) => {
    const calls: Thing[] = [];
    const change = (thing: Thing) => (calls.push(thing), thing);
    expect(await store.update(things, 'one', change)).toBeUndefined();
    expect(calls).toStrictEqual([]);
  });

  storeTest('writes nothing when the change throws, and hands the error on', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    const failure = new Error('No');
    const change = () => {
      throw failure;
    };
    await expect(store.update(things, 'one', change)).rejects.toBe(failure);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 1 });
    expect(await store.update(things, 'one', (thing) => ({ ...thing, count: 3 }))).toMatchObject({ count: 3 });
  });

  storeTest('writes nothing when the change returns the very document', async ({ store }) => {
    await store.insert(things, { id: 'one', content: { list: [1] } });
    const same = await store.update(things, 'one', (thing) => {
      (thing.content as { list: number[] }).list.push(2);
      return thing;
    });
    expect(same?.id).toBe('one');
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', content: { list: [1] } });
  });

  storeTest('refuses a change that cannot be stored, or that changes the ID', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    await expect(store.update(things, 'one', (): Thing => ({ id: 'two' }))).rejects.toThrow(TypeError);
    await expect(store.update(things, 'one', (): Thing => ({ id: 'one', content: () => 1 }))).rejects.toThrow(
      TypeError,
    );
    await expect(store.insert(things, { id: '' })).rejects.toThrow(TypeError);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 1 });
  });

  storeTest('deletes, if the condition holds', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    expect(await store.delete(things, 'one', ({ count }) => count === 2)).toBe(false);
    expect(await store.get(things, 'one')).toBeDefined();
    expect(await store.delete(things, 'one', ({ count }) => count === 1)).toBe(true);
    expect(await store.get(things, 'one')).toBeUndefined();
    expect(await store.delete(things, 'one')).toBe(false);
    await store.insert(things, { id: 'one', count: 2 });
    expect(await store.delete(things, 'one')).toBe(true);
  });
}

function describeContention(storeTest: StoreTest): void {
  storeTest('loses none of 200 updates at a time', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 0 });
    const add = (thing: Thing) => ({ ...thing, count: (thing.count ?? 0) + 1 });
    const updated = await Promise.all(Array.from({ length: 200 }, () => store.update(things, 'one', add)));
    expect(new Set(updated.map((thing) => thing?.count)).size).toBe(200);
    expect(await store.get(things, 'one')).toMatchObject({ count: 200 });
  });

  storeTest('gives a key to one of 50 contenders, with rising fencing tokens', async ({ store }) => {
    const now = await store.now();
    const claim = async (backend: string) => {
      const key = await upsert(store, keys, 'acme/draw/room', (current) =>
        current ? current : claimKey(current, 'acme/draw/room', backend, now),
      );
      return key.backend === backend;
    };
    const won = await Promise.all(Array.from({ length: 50 }, (_, i) => claim(`backend-${i}`)));
    expect(won.filter(Boolean)).toHaveLength(1);

    const taken = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        upsert(store, keys, 'acme/draw/room', (current) => claimKey(current, 'acme/draw/room', `next-${i}`, now)),
      ),
    );
    expect(new Set(taken.map(({ fencingToken }) => fencingToken)).size).toBe(50);
  });

  storeTest('lets a document end once, with updates and deletions at a time', async ({ store }) => {
    for (let round = 0; round < 20; round += 1) {
      await store.insert(things, { id: 'one', count: 0 });
      const add = (thing: Thing) => ({ ...thing, count: (thing.count ?? 0) + 1 });
      const deleted = await Promise.all([
        store.update(things, 'one', add).then(() => false),
        store.delete(things, 'one'),
        store.update(things, 'one', add).then(() => false),
        store.delete(things, 'one'),
      ]);
      expect(deleted.filter(Boolean)).toHaveLength(1);
      expect(await store.get(things, 'one')).toBeUndefined();
    }
  });
}

function describeQueries(storeTest: StoreTest): void {
  const idsOf = (found: readonly Thing[]) => found.map(({ id }) => id);
  const fill = async (store: Store) => {
    const numbered = inOrder.map((rank, i) => ({ id: String(i).padStart(2, '0'), group: 'g', rank }));
    await Promise.all(numbered.toReversed().map((thing) => store.insert(things, thing)));
    return numbered;
  };

  storeTest('orders null, numbers, strings by their bytes, booleans, dates', async ({ store }) => {
    const all = idsOf(await fill(store));
    expect(idsOf(await store.find(things, { index: 'byRank' }))).toStrictEqual(all);
    expect(idsOf(await store.find(things, { index: 'byRank', order: 'descending' }))).toStrictEqual(all.toReversed());
    const inGroup = { index: 'byGroup', equals: { group: 'g' } } as const;
    expect(idsOf(await store.find(things, inGroup))).toStrictEqual(all);
    expect(idsOf(await store.find(things, { ...inGroup, order: 'descending' }))).toStrictEqual(all.toReversed());
  });

  storeTest('finds each value by equality, and only it', async ({ store }) => {
    for (const { id, rank } of await fill(store)) {
      expect(idsOf(await store.find(things, { index: 'byRank', equals: { rank } }))).toStrictEqual([id]);
      expect(idsOf(await store.find(things, { index: 'byGroup', equals: { group: 'g', rank } }))).toStrictEqual([id]);
    }
  });

  storeTest('finds ranges, which hold values of their own type', async ({ store }) => {
    const all = await fill(store);
    const typeOf = (value: IndexValue) => (value instanceof Date ? 'date' : typeof value);
    for (const { id, rank } of all) {
      if (rank === null) continue;
      const alike = all.filter((other) => other.rank !== null && typeOf(other.rank) === typeOf(rank));
      const at = alike.findIndex((other) => other.id === id);
      const ids = idsOf(alike);
      const expectRange = async (range: Record<string, IndexValue>, expected: string[]) => {
        expect(idsOf(await store.find(things, { index: 'byRank', range }))).toStrictEqual(expected);
        const down = await store.find(things, { index: 'byGroup', equals: { group: 'g' }, range, order: 'descending' });
        expect(idsOf(down)).toStrictEqual(expected.toReversed());
      };
      await expectRange({ from: rank }, ids.slice(at));
      await expectRange({ after: rank }, ids.slice(at + 1));
      await expectRange({ to: rank }, ids.slice(0, at + 1));
      await expectRange({ before: rank }, ids.slice(0, at));
      await expectRange({ from: rank, to: rank }, [id]);
      await expectRange({ after: rank, before: rank }, []);
      await expectRange({ after: null, to: rank }, ids.slice(0, at + 1));
    }
    const notNull = idsOf(all.filter(({ rank }) => rank !== null));
    expect(idsOf(await store.find(things, { index: 'byRank', range: { after: null } }))).toStrictEqual(notNull);
    const anyDate = { from: new Date(-8.64e15), to: new Date(8.64e15) };
    expect(await store.find(things, { index: 'byRank', range: anyDate })).toHaveLength(5);
  });

  storeTest('takes an absent field for null', async ({ store }) => {
    await store.insert(things, { id: 'b' });
    await store.insert(things, { id: 'a', group: null });
    await store.insert(things, { id: 'c', group: 'x' });
    expect(idsOf(await store.find(things, { index: 'byGroup', equals: { group: null } }))).toStrictEqual(['a', 'b']);
    const nulls = { index: 'byGroup', equals: { group: null, rank: null } } as const;
    expect(idsOf(await store.find(things, { ...nulls, order: 'descending' }))).toStrictEqual(['b', 'a']);
    expect(idsOf(await store.find(things, { index: 'byGroup' }))).toStrictEqual(['a', 'b', 'c']);
  });

  storeTest('orders by all fields that remain, then by ID, both ways', async ({ store }) => {
    for (const id of ['d', 'b', 'a', 'c']) await store.insert(things, { id, group: 'x', rank: id < 'c' ? 1 : 0 });
    const ascending = ['c', 'd', 'a', 'b'];
    expect(idsOf(await store.find(things, { index: 'byGroup' }))).toStrictEqual(ascending);
    const descending = await store.find(things, { index: 'byGroup', order: 'descending' });
    expect(idsOf(descending)).toStrictEqual(ascending.toReversed());
  });

  storeTest('goes on among equals after a document, by its ID', async ({ store }) => {
    for (const id of ['d', 'b', 'a', 'c']) await store.insert(things, { id, group: 'x', rank: 1 });
    await store.insert(things, { id: 'bb', group: 'x', rank: 2 });
    const equal = { index: 'byGroup', equals: { group: 'x', rank: 1 } } as const;
    expect(idsOf(await store.find(things, { ...equal, range: { after: 'b' } }))).toStrictEqual(['c', 'd']);
    const down = { ...equal, range: { before: 'c' }, order: 'descending', limit: 1 } as const;
    expect(idsOf(await store.find(things, down))).toStrictEqual(['b']);
  });

  storeTest('finds at most as many as asked for', async ({ store }) => {
    for (let rank = 0; rank < 5; rank += 1) await store.insert(things, { id: `t${rank}`, rank });
    const limited = async (limit: number, order: 'ascending' | 'descending') =>
      idsOf(await store.find(things, { index: 'byRank', order, limit }));
    expect(await limited(2, 'ascending')).toStrictEqual(['t0', 't1']);
    expect(await limited(2, 'descending')).toStrictEqual(['t4', 't3']);
    expect(await limited(0, 'ascending')).toStrictEqual([]);
    expect(await limited(9, 'ascending')).toHaveLength(5);
    await expect(limited(-1, 'ascending')).rejects.toThrow(RangeError);
    await expect(limited(1.5, 'ascending')).rejects.toThrow(RangeError);
  });

  storeTest('finds what was written a moment ago, as it stands', async ({ store }) => {
    await store.insert(things, { id: 'one', group: 'a' });
    await store.update(things, 'one', (thing) => ({ ...thing, group: 'b' }));
    expect(await store.find(things, { index: 'byGroup', equals: { group: 'a' } })).toStrictEqual([]);
    expect(idsOf(await store.find(things, { index: 'byGroup', equals: { group: 'b' } }))).toStrictEqual(['one']);
    await store.delete(things, 'one');
    expect(await store.find(things, { index: 'byGroup', equals: { group: 'b' } })).toStrictEqual([]);
  });

  storeTest('refuses what its indexes cannot serve', async ({ store }) => {
    const unindexed = [
      { index: 'byColour' },
      { index: 'byGroup', equals: { rank: 1 } },
      { index: 'byGroup', equals: { group: 1, count: 1 } },
      { index: 'byGroup', equals: { group: 1, rank: 1, count: 1 } },
      { index: 'byRank', range: { from: 1, after: 1 } },
      { index: 'byRank', range: { to: 1, before: 1 } },
      { index: 'byRank', range: { from: null } },
      { index: 'byRank', range: { before: null } },
      { index: 'byRank', range: { from: 1, to: 'a' } },
    ];
    for (const query of unindexed) await expectCode(store.find(things, query as { index: 'byRank' }), 'not-indexed');
    const senseless = { index: 'byRank', range: { to: Number.POSITIVE_INFINITY } } as const;
    await expect(store.find(things, senseless)).rejects.toThrow(RangeError);
  });
}

function describeScans(storeTest: StoreTest): void {
  const all = { index: 'byRank' } as const;
  const idsOf = (found: readonly Thing[]) => found.map(({ id }) => id);
  const scanned = async (store: Store, scan: Scan<Thing, 'byGroup' | 'byRank'>) => {
    const ids: string[] = [];
    for await (const { id } of store.scan(things, scan)) ids.push(id);
    return ids;
  };
  const fill = async (store: Store, count: number) => {
    const ids = Array.from({ length: count }, (_, i) => `t${String(i).padStart(2, '0')}`);
    await Promise.all(ids.map((id, rank) => store.insert(things, { id, rank, group: 'g' })));
    return ids;
  };

  storeTest('reports what a query finds, in its order, whatever the size of a batch', async ({ store }) => {
    const groups = [null, 1, 'a', true];
    const documents = groups.flatMap((group, i) =>
      [...inOrder, ...inOrder.slice(0, 8)].map((rank, j) => ({ id: `${i}-${j}`, group, rank })),
    );
    await Promise.all(documents.map((document) => store.insert(things, document)));
    await store.insert(things, { id: 'no fields' });
    const queries: Omit<Scan<Thing, 'byGroup' | 'byRank'>, 'batchSize'>[] = [
      { index: 'byGroup' },
      { index: 'byRank' },
      { index: 'byRank', range: { after: null } },
      { index: 'byRank', range: { after: 0, to: 10 } },
      { index: 'byRank', range: { from: '', before: 'a' } },
      { index: 'byGroup', equals: { group: 'a' } },
      { index: 'byGroup', equals: { group: null } },
      { index: 'byGroup', equals: { group: 'a' }, range: { before: 'é' } },
      { index: 'byGroup', equals: { group: 'a', rank: '$' } },
      { index: 'byGroup', range: { from: 'a' } },
      { index: 'byGroup', equals: { group: 'nobody' } },
    ];
    for (const query of queries) {
      const found = idsOf(await store.find(things, query));
      for (const batchSize of [2, 30]) {
        expect([query, await scanned(store, { ...query, batchSize })]).toStrictEqual([query, found]);
      }
    }
    expect(await scanned(store, all)).toHaveLength(documents.length + 1);
  });

  storeTest(
    'reports a document once, while others are written, and again only if it moved within the index',
    async ({ store }) => {
      const ids = await fill(store, 60);
      const rankOf = async (id: string, rank: number) => {
        await store.update(things, id, (thing) => ({ ...thing, rank }));
      };
      const reported: string[] = [];
      for await (const { id } of store.scan(things, { ...all, batchSize: 4 })) {
        reported.push(id);
        if (id !== 't10' || reported.indexOf(id) < reported.length - 1) continue;
        // Of what was reported: forward, back, away, and away and here again further on.
        await rankOf('t02', 40.5);
        await rankOf('t10', 59.5);
        await rankOf('t09', -1);
        await store.delete(things, 't03');
        await store.delete(things, 't04');
        await store.insert(things, { id: 't04', rank: 45.5 });
        // Of what is still to come: back, far back, on, away.
        await rankOf('t30', 29.5);
        await rankOf('t31', -2);
        await rankOf('t32', 58.5);
        await store.delete(things, 't33');
        // New: before and behind.
        await store.insert(things, { id: 'early', rank: -3 });
        await store.insert(things, { id: 'late', rank: 70 });
      }
      const movedOn = ['t02', 't04', 't10'];
      expect(reported.filter((id, index) => reported.indexOf(id) !== index).toSorted()).toStrictEqual(movedOn);
      const mayBeAbsent = new Set(['t31', 't33', 'early']);
      const expected = [...ids, 'late'].filter((id) => !mayBeAbsent.has(id));
      const seen = [...new Set(reported)].filter((id) => !mayBeAbsent.has(id));
      expect(seen.toSorted()).toStrictEqual(expected.toSorted());
    },
  );

  storeTest('goes on beside writers that never pause', async ({ store }) => {
    const ids = await fill(store, 60);
    const untouched = ids.filter((_, i) => i % 3 === 0);
    const writing = new AbortController();
    const write = async (): Promise<void> => {
      while (!writing.signal.aborted) {
        const id = ids[3 * Math.floor(Math.random() * 20) + 1] ?? '';
        const other = ids[3 * Math.floor(Math.random() * 20) + 2] ?? '';
        await store.update(things, id, (thing) => ({ ...thing, rank: Math.random() * 60 }));
        await store.delete(things, other);
        await store.insert(things, { id: other, rank: Math.random() * 60 });
      }
    };
    const writer = write();
    for (let round = 0; round < 5; round += 1) {
      const reported = await scanned(store, { ...all, batchSize: 3 });
      expect(reported.filter((id) => untouched.includes(id))).toStrictEqual(untouched);
    }
    writing.abort();
    await writer;
  });

  storeTest('goes on when everything that was reported is deleted', async ({ store }) => {
    const ids = await fill(store, 20);
    const reported: string[] = [];
    for await (const { id } of store.scan(things, { ...all, batchSize: 4 })) {
      reported.push(id);
      await store.delete(things, id);
    }
    expect(reported).toStrictEqual(ids);
    expect(await store.find(things, all)).toStrictEqual([]);
  });

  storeTest('can be left at any document, many times', async ({ store }) => {
    await fill(store, 20);
    for (let round = 0; round < 200; round += 1) {
      for await (const { id } of store.scan(things, { ...all, batchSize: 4 })) if (id === 't05') break;
    }
    // Begun and never gone on with: closing waits for neither.
    await store.scan(things, { ...all, batchSize: 4 }).next();
    await store.update(things, 't05', (thing) => ({ ...thing, rank: 100 }));
    await store[Symbol.asyncDispose]();
    await expectCode(scanned(store, all), 'unavailable');
  });

  storeTest('refuses what its indexes cannot serve', async ({ store }) => {
    await expectCode(scanned(store, { index: 'byColour' as 'byRank' }), 'not-indexed');
    await expectCode(scanned(store, { index: 'byGroup', equals: { rank: 1 } }), 'not-indexed');
  });
}

function describeClosing(create: () => Promise<StoreData>): void {
  test('is shared exactly if it can be opened twice at the same time', async () => {
    await using data = await create();
    await using store = await data.open(collections);
    await store.insert(things, { id: 'one' });
    if (!store.isShared) {
      await expectCode(data.open(collections), 'locked');
      return;
    }
    await using second = await data.open(collections);
    expect(await second.get(things, 'one')).toStrictEqual({ id: 'one' });
  });

  test('has everything when it is opened again', async () => {
    await using data = await create();
    {
      await using store = await data.open(collections);
      await store.insert(things, { id: 'one', rank: 1 });
      await store.insert(things, { id: 'two', rank: 2 });
      await store.update(things, 'one', (thing) => ({ ...thing, rank: 3 }));
      await store.delete(things, 'two');
    }
    await using store = await data.open(collections);
    expect(await store.find(things, { index: 'byRank' })).toStrictEqual([{ id: 'one', rank: 3 }]);
  });

  test('finds by indexes that are declared later, or differently', async () => {
    await using data = await create();
    {
      const bare: AnyCollection = { name: 'things', indexes: { byRank: ['group'], byCount: ['count'] } };
      await using store = await data.open([bare]);
      await store.insert(things, { id: 'one', group: 'a', rank: 2 });
      await store.insert(things, { id: 'two', group: 'b', rank: 1 });
    }
    await using store = await data.open(collections);
    const found = await store.find(things, { index: 'byRank' });
    expect(found.map(({ id }) => id)).toStrictEqual(['two', 'one']);
  });

  test('finishes what it accepted, and refuses what comes after', async () => {
    await using data = await create();
    const store = await data.open(collections);
    await store.insert(things, { id: 'one', count: 0 });
    const add = (thing: Thing) => ({ ...thing, count: (thing.count ?? 0) + 1 });
    const accepted = [
      ...Array.from({ length: 20 }, () => store.update(things, 'one', add)),
      ...Array.from({ length: 20 }, (_, i) => store.insert(things, { id: `more-${i}` })),
    ];
    const closing = store[Symbol.asyncDispose]();
    await expectCode(store.insert(things, { id: 'late' }), 'unavailable');
    await closing;
    await store[Symbol.asyncDispose]();
    await Promise.all(accepted);

    await expectCode(store.get(things, 'one'), 'unavailable');
    await expectCode(store.update(things, 'one', add), 'unavailable');
    await expectCode(store.delete(things, 'one'), 'unavailable');
    await expectCode(store.find(things, { index: 'byRank' }), 'unavailable');
    await expectCode(store.ping(), 'unavailable');
    await using again = await data.open(collections);
    expect(await again.get(things, 'one')).toMatchObject({ count: 20 });
    expect(await again.get(things, 'more-19')).toBeDefined();
    expect(await again.get(things, 'late')).toBeUndefined();
  });
}

async function expectCode(operation: Promise<unknown>, code: StoreError['code']): Promise<void> {
  const error: unknown = await operation.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toHaveProperty('code', code);
}
