/** The suite that every store driver passes. */
import { afterAll, describe, expect, test } from 'vitest';
import type { AnyCollection } from '../../core/store/query-plan.ts';
import type { Collection, Store } from '../../core/store/store.ts';
import { emptyStore } from '../kit/ports/empty-store.ts';
import { describeContention, describeDocuments } from './store/documents.ts';
import { describeQueries } from './store/queries.ts';
import { describeScans } from './store/scans.ts';
import { collections, expectCode, things } from './store/things.ts';
import type { StoreData, Thing } from './store/things.ts';

/** Declares the tests of a driver; `create` creates new, empty data. */
export function describeStore(name: string, create: () => Promise<StoreData>): void {
  // One store, which is emptied for each test, because opening a store takes longer than most tests.
  const closing = new AsyncDisposableStack();
  let shared: Promise<Store> | undefined;
  const openShared = async () => closing.use(await closing.use(await create()).open(collections));
  afterAll(async () => await closing.disposeAsync());
  const storeTest = test.extend<{ store: Store }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads the needed fixtures from the pattern
    store: async ({}, use) => {
      const store = await (shared ??= openShared());
      await emptyStore(store, collections);
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
    describeScans(storeTest, create);
  });
  describe(`${name}: closing`, () => {
    describeClosing(create);
  });
}

function describeClosing(create: () => Promise<StoreData>): void {
  test('reports that it is shared exactly if it can be opened twice at the same time', async () => {
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

  test('has all documents when it is opened again', async () => {
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

  test('finds by indexes that are declared later or changed', async () => {
    await using data = await create();
    {
      const bare: AnyCollection = {
        name: 'things',
        indexes: { byRank: ['group'], byCount: ['count'], marked: ['mark', 'rank'] },
      };
      await using store = await data.open([bare]);
      await store.insert(things, { id: 'one', group: 'a', rank: 2, mark: true });
      await store.insert(things, { id: 'two', group: 'b', rank: 1 });
    }
    await using store = await data.open(collections);
    const found = await store.find(things, { index: 'byRank' });
    expect(found.map(({ id }) => id)).toStrictEqual(['two', 'one']);
    expect(await store.findIds(things, { index: 'marked', range: { after: null } })).toStrictEqual(['one']);
  });

  test('finds documents that a partial index omitted when the index becomes a full one', async () => {
    await using data = await create();
    {
      await using store = await data.open(collections);
      await store.insert(things, { id: 'one', mark: true });
      await store.insert(things, { id: 'two' });
    }
    const whole: Collection<Thing, 'marked'> = { name: 'things', indexes: { marked: ['mark', 'rank'] } };
    await using store = await data.open([whole]);
    expect(await store.findIds(whole, { index: 'marked' })).toStrictEqual(['two', 'one']);
  });

  test('finishes calls that it accepted before closing, and rejects later calls', async () => {
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
