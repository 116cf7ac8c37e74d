import { expect, test } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { CachedReads } from './cached-reads.ts';

function open({ maxEntries = 100 } = {}) {
  const clock = new ManualClock();
  const documents = new Map<string, string>();
  const asked: string[] = [];
  const reads = new CachedReads<string>({
    clock,
    trustMs: 1_000,
    maxEntries,
    read: async (id) => {
      asked.push(id);
      return documents.get(id);
    },
    isKept: (value) => value !== 'starting',
  });
  return { clock, documents, asked, reads };
}

test('a result is cached while it is trusted, also if there is no document', async () => {
  const { clock, documents, reads } = open();
  documents.set('a', 'one');
  expect([await reads.read('a'), await reads.read('b')]).toEqual(['one', undefined]);
  await clock.advance(999);
  expect([reads.known('a'), reads.known('b')]).toMatchObject([{ value: 'one' }, { value: undefined }]);
  await clock.advance(1);
  expect([reads.known('a'), reads.known('b')]).toEqual([undefined, undefined]);
});

test('a document replaces the result without one, and vice versa', async () => {
  const { documents, reads } = open();
  await reads.read('a');
  documents.set('a', 'one');
  await reads.read('a');
  expect(reads.known('a')).toMatchObject({ value: 'one' });
  documents.delete('a');
  await reads.read('a');
  expect(reads.known('a')).toMatchObject({ value: undefined });
  documents.set('a', 'starting');
  await reads.read('a');
  expect(reads.known('a')).toBeUndefined();
});

test('unknown IDs displace no document, and memory is bounded', async () => {
  const { documents, asked, reads } = open({ maxEntries: 10 });
  for (const id of ['a', 'b']) documents.set(id, id);
  await Promise.all(['a', 'b'].map((id) => reads.read(id)));
  for (let i = 0; i < 1_000; i += 1) await reads.read(`unknown ${i}`);
  expect([reads.known('a'), reads.known('b')]).toMatchObject([{ value: 'a' }, { value: 'b' }]);
  expect(asked.filter((id) => reads.known(id) !== undefined)).toHaveLength(12);
});

test('expired results are removed as new ones arrive', async () => {
  const { clock, documents, reads } = open({ maxEntries: 10 });
  for (let i = 0; i < 30; i += 1) documents.set(`${i}`, 'one');
  for (let i = 0; i < 10; i += 1) await reads.read(`${i}`);
  await clock.advance(1_000);
  for (let i = 10; i < 19; i += 1) await reads.read(`${i}`);
  // Ten fit only if the expired ones were removed.
  for (let i = 10; i < 19; i += 1) expect(reads.known(`${i}`)).toMatchObject({ value: 'one' });
});

test('concurrent callers share a read, and a failed read is not cached', async () => {
  let fails = true;
  let count = 0;
  const read = async () => {
    count += 1;
    if (fails) throw new Error('away');
    return 'one';
  };
  const reads = new CachedReads<string>({ clock: new ManualClock(), trustMs: 1_000, maxEntries: 10, read });
  const failed = await Promise.allSettled([reads.read('a'), reads.read('a')]);
  expect([count, failed.map(({ status }) => status)]).toEqual([1, ['rejected', 'rejected']]);
  fails = false;
  expect(await Promise.all([reads.read('a'), reads.read('a')])).toEqual(['one', 'one']);
  expect(count).toBe(2);
});

test('a result that a caller keeps is current only while it is cached', async () => {
  const { clock, documents, reads } = open({ maxEntries: 2 });
  for (const id of ['a', 'b', 'c']) documents.set(id, id);
  const current = () => kept.map((result) => result !== undefined && reads.isCurrent(result, clock.now().getTime()));
  await reads.read('a');
  await reads.read('b');
  const kept = [reads.known('a'), reads.known('b')];
  expect(current()).toEqual([true, true]);
  reads.forget('b');
  expect(current()).toEqual([true, false]);
  await reads.read('b');
  await reads.read('c');
  // The cache holds two.
  expect([reads.known('a'), ...current()]).toEqual([undefined, false, false]);
  kept.splice(0, 2, reads.known('b'), reads.known('c'));
  await reads.read('c');
  expect(current()).toEqual([true, false]);
  await clock.advance(1_000);
  expect(current()).toEqual([false, false]);
});
