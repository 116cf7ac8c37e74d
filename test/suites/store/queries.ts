/** Tests of `find`: order, equality, ranges, limits. */
import { expect } from 'vitest';
import type { IndexValue, Query, Store } from '../../../core/store/store.ts';
import { expectCode, idsOf, inOrder, things } from './things.ts';
import type { StoreTest, Thing } from './things.ts';

export function describeQueries(storeTest: StoreTest): void {
  const fill = async (store: Store) => {
    const numbered = inOrder.map((rank, i) => ({ id: String(i).padStart(2, '0'), group: 'g', rank }));
    await Promise.all(numbered.toReversed().map((thing) => store.insert(things, thing)));
    return numbered;
  };

  storeTest('orders null, then numbers, strings by their bytes, booleans, dates', async ({ store }) => {
    const all = idsOf(await fill(store));
    expect(idsOf(await store.find(things, { index: 'byRank' }))).toStrictEqual(all);
    expect(idsOf(await store.find(things, { index: 'byRank', order: 'descending' }))).toStrictEqual(all.toReversed());
    const inGroup = { index: 'byGroup', equals: { group: 'g' } } as const;
    expect(idsOf(await store.find(things, inGroup))).toStrictEqual(all);
    expect(idsOf(await store.find(things, { ...inGroup, order: 'descending' }))).toStrictEqual(all.toReversed());
  });

  storeTest('finds each value by equality, and no other', async ({ store }) => {
    for (const { id, rank } of await fill(store)) {
      expect(idsOf(await store.find(things, { index: 'byRank', equals: { rank } }))).toStrictEqual([id]);
      expect(idsOf(await store.find(things, { index: 'byGroup', equals: { group: 'g', rank } }))).toStrictEqual([id]);
    }
  });

  storeTest('finds ranges, which contain only values of their own type', async ({ store }) => {
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

  storeTest('treats an absent field as null', async ({ store }) => {
    await store.insert(things, { id: 'b' });
    await store.insert(things, { id: 'a', group: null });
    await store.insert(things, { id: 'c', group: 'x' });
    expect(idsOf(await store.find(things, { index: 'byGroup', equals: { group: null } }))).toStrictEqual(['a', 'b']);
    const nulls = { index: 'byGroup', equals: { group: null, rank: null } } as const;
    expect(idsOf(await store.find(things, { ...nulls, order: 'descending' }))).toStrictEqual(['b', 'a']);
    expect(idsOf(await store.find(things, { index: 'byGroup' }))).toStrictEqual(['a', 'b', 'c']);
  });

  storeTest('orders by all remaining fields, then by ID, in both directions', async ({ store }) => {
    for (const id of ['d', 'b', 'a', 'c']) await store.insert(things, { id, group: 'x', rank: id < 'c' ? 1 : 0 });
    const ascending = ['c', 'd', 'a', 'b'];
    expect(idsOf(await store.find(things, { index: 'byGroup' }))).toStrictEqual(ascending);
    const descending = await store.find(things, { index: 'byGroup', order: 'descending' });
    expect(idsOf(descending)).toStrictEqual(ascending.toReversed());
  });

  storeTest('continues after a document among equal ones, by its ID', async ({ store }) => {
    for (const id of ['d', 'b', 'a', 'c']) await store.insert(things, { id, group: 'x', rank: 1 });
    await store.insert(things, { id: 'bb', group: 'x', rank: 2 });
    const equal = { index: 'byGroup', equals: { group: 'x', rank: 1 } } as const;
    expect(idsOf(await store.find(things, { ...equal, range: { after: 'b' } }))).toStrictEqual(['c', 'd']);
    const down = { ...equal, range: { before: 'c' }, order: 'descending', limit: 1 } as const;
    expect(idsOf(await store.find(things, down))).toStrictEqual(['b']);
  });

  storeTest('finds at most as many documents as the limit', async ({ store }) => {
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

  storeTest('finds the IDs of the same documents as a query', async ({ store }) => {
    const all = await fill(store);
    const queries: readonly Query<Thing, 'byRank' | 'byGroup'>[] = [
      { index: 'byRank', order: 'descending' },
      { index: 'byRank', range: { after: 1 }, limit: 2 },
      { index: 'byGroup', equals: { group: 'g' }, range: { after: null } },
      { index: 'byGroup', equals: { group: 'absent' } },
      { index: 'byRank', limit: 0 },
    ];
    for (const query of queries) {
      expect(await store.findIds(things, query)).toStrictEqual(idsOf(await store.find(things, query)));
    }
    expect(await store.findIds(things, { index: 'byRank' })).toHaveLength(all.length);
    await expectCode(store.findIds(things, { index: 'none' } as unknown as { index: 'byRank' }), 'not-indexed');
  });

  storeTest('finds the current state of a document right after a write', async ({ store }) => {
    await store.insert(things, { id: 'one', group: 'a' });
    await store.update(things, 'one', (thing) => ({ ...thing, group: 'b' }));
    expect(await store.find(things, { index: 'byGroup', equals: { group: 'a' } })).toStrictEqual([]);
    expect(idsOf(await store.find(things, { index: 'byGroup', equals: { group: 'b' } }))).toStrictEqual(['one']);
    await store.delete(things, 'one');
    expect(await store.find(things, { index: 'byGroup', equals: { group: 'b' } })).toStrictEqual([]);
  });

  storeTest('finds documents with the first field of a partial index by that index', async ({ store }) => {
    const all = await fill(store);
    const marked = all.map((thing) => ({ ...thing, id: `m${thing.id}`, mark: thing.rank }));
    await Promise.all(marked.map((thing) => store.insert(things, thing)));
    const withMark = idsOf(marked.filter(({ mark }) => mark !== null));
    const find = async (query: Omit<Query<Thing, 'marked'>, 'index'>) => {
      const found = idsOf(await store.find(things, { index: 'marked', ...query }));
      expect(await store.findIds(things, { index: 'marked', ...query })).toStrictEqual(found);
      return found;
    };
    expect(await find({ range: { after: null } })).toStrictEqual(withMark);
    expect(await find({ range: { after: null }, order: 'descending', limit: 2 })).toStrictEqual(
      withMark.toReversed().slice(0, 2),
    );
    const dates = idsOf(marked.filter(({ mark }) => mark instanceof Date));
    expect(await find({ range: { from: new Date(-8.64e15) } })).toStrictEqual(dates);
    for (const { id, mark } of marked) {
      if (mark === null) continue;
      expect(await find({ equals: { mark } })).toStrictEqual([id]);
      expect(await find({ equals: { mark, rank: mark } })).toStrictEqual([id]);
    }
  });

  storeTest('finds a document by a partial index while it has the field', async ({ store }) => {
    const marked = async () => await store.findIds(things, { index: 'marked', range: { after: null } });
    await store.insert(things, { id: 'one' });
    expect(await marked()).toStrictEqual([]);
    await store.update(things, 'one', (thing) => ({ ...thing, mark: 'x' }));
    expect(await marked()).toStrictEqual(['one']);
    await store.update(things, 'one', (thing) => ({ ...thing, mark: null }));
    expect(await marked()).toStrictEqual([]);
    await store.update(things, 'one', (thing) => ({ ...thing, mark: 1 }));
    await store.update(things, 'one', ({ mark: _mark, ...thing }) => thing);
    expect(await marked()).toStrictEqual([]);
  });

  storeTest('rejects queries that its indexes cannot answer', async ({ store }) => {
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
      { index: 'marked' },
      { index: 'marked', equals: { mark: null } },
      { index: 'marked', equals: { mark: null }, range: { after: 1 } },
    ];
    for (const query of unindexed) await expectCode(store.find(things, query as { index: 'byRank' }), 'not-indexed');
    const infinite = { index: 'byRank', range: { to: Number.POSITIVE_INFINITY } } as const;
    await expect(store.find(things, infinite)).rejects.toThrow(RangeError);
  });
}
