/** Tests of `scan`: in batches, during writes. */
import { expect, test } from 'vitest';
import type { Scan, Store } from '../../../core/store/store.ts';
import { collections, expectCode, idsOf, inOrder, things } from './things.ts';
import type { StoreData, StoreTest, Thing } from './things.ts';

export function describeScans(storeTest: StoreTest, create: () => Promise<StoreData>): void {
  const all = { index: 'byRank' } as const;
  const scanned = async (store: Store, scan: Scan<Thing, 'byGroup' | 'byRank' | 'marked'>) => {
    const ids: string[] = [];
    for await (const { id } of store.scan(things, scan)) ids.push(id);
    return ids;
  };
  const fill = async (store: Store, count: number) => {
    const ids = Array.from({ length: count }, (_, i) => `t${String(i).padStart(2, '0')}`);
    await Promise.all(ids.map((id, rank) => store.insert(things, { id, rank, group: 'g' })));
    return ids;
  };

  storeTest('returns what a query finds, in the same order, for every batch size', async ({ store }) => {
    const groups = [null, 1, 'a', true];
    const documents = groups.flatMap((group, i) =>
      [...inOrder, ...inOrder.slice(0, 8)].map((rank, j) => ({
        id: `${i}-${j}`,
        group,
        rank,
        mark: j % 3 > 0 ? null : group,
      })),
    );
    await Promise.all(documents.map((document) => store.insert(things, document)));
    await store.insert(things, { id: 'no fields' });
    const queries: Omit<Scan<Thing, 'byGroup' | 'byRank' | 'marked'>, 'batchSize'>[] = [
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
      { index: 'byGroup', equals: { group: 'absent' } },
      { index: 'marked', range: { after: null } },
      { index: 'marked', range: { from: 'a' } },
      { index: 'marked', equals: { mark: 1 } },
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
    'returns a document once while others are written, and again only if it moved within the index',
    async ({ store }) => {
      const ids = await fill(store, 60);
      const rankOf = async (id: string, rank: number) => {
        await store.update(things, id, (thing) => ({ ...thing, rank }));
      };
      const reported: string[] = [];
      for await (const { id } of store.scan(things, { ...all, batchSize: 4 })) {
        reported.push(id);
        if (id !== 't10' || reported.indexOf(id) < reported.length - 1) continue;
        // Documents already returned: moved forward, moved back, deleted, deleted and inserted again at a later position.
        await rankOf('t02', 40.5);
        await rankOf('t10', 59.5);
        await rankOf('t09', -1);
        await store.delete(things, 't03');
        await store.delete(things, 't04');
        await store.insert(things, { id: 't04', rank: 45.5 });
        // Documents not yet returned: moved back, moved far back, moved forward, deleted.
        await rankOf('t30', 29.5);
        await rankOf('t31', -2);
        await rankOf('t32', 58.5);
        await store.delete(things, 't33');
        // New documents: before and after the scan's position.
        await store.insert(things, { id: 'early', rank: -3 });
        await store.insert(things, { id: 'late', rank: 70 });
      }
      const movedForward = ['t02', 't04', 't10'];
      expect(reported.filter((id, index) => reported.indexOf(id) !== index).toSorted()).toStrictEqual(movedForward);
      const mayBeAbsent = new Set(['t31', 't33', 'early']);
      const expected = [...ids, 'late'].filter((id) => !mayBeAbsent.has(id));
      const seen = [...new Set(reported)].filter((id) => !mayBeAbsent.has(id));
      expect(seen.toSorted()).toStrictEqual(expected.toSorted());
    },
  );

  storeTest('finishes while writers never pause', async ({ store }) => {
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

  storeTest('continues when every returned document is deleted', async ({ store }) => {
    const ids = await fill(store, 20);
    const reported: string[] = [];
    for await (const { id } of store.scan(things, { ...all, batchSize: 4 })) {
      reported.push(id);
      await store.delete(things, id);
    }
    expect(reported).toStrictEqual(ids);
    expect(await store.find(things, all)).toStrictEqual([]);
  });

  test('can be abandoned at any document, many times', async () => {
    await using data = await create();
    await using store = await data.open(collections);
    await fill(store, 20);
    for (let round = 0; round < 200; round += 1) {
      for await (const { id } of store.scan(things, { ...all, batchSize: 4 })) if (id === 't05') break;
    }
    // Started and never continued: closing does not wait for it.
    await store.scan(things, { ...all, batchSize: 4 }).next();
    const changed = await store.update(things, 't05', (thing) => ({ ...thing, rank: 100 }));
    expect(changed).toMatchObject({ id: 't05', rank: 100 });
    await store[Symbol.asyncDispose]();
    await expectCode(scanned(store, all), 'unavailable');
  });

  storeTest('rejects scans that its indexes cannot answer', async ({ store }) => {
    await expectCode(scanned(store, { index: 'byColour' as 'byRank' }), 'not-indexed');
    await expectCode(scanned(store, { index: 'byGroup', equals: { rank: 1 } }), 'not-indexed');
  });
}
