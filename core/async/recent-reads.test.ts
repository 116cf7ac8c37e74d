import { expect, test } from 'vitest';
import { RecentReads } from './recent-reads.ts';

function newReads(options: { forMs?: number; keeps?: (value: number) => boolean } = {}) {
  let count = 0;
  const reads = new RecentReads<number>({ forMs: 60_000, max: 10, ...options });
  return { reads, get: async () => await reads.get('a', async () => (count += 1)) };
}

test('reads once, also for requests at the same time, until the value is forgotten', async () => {
  const { reads, get } = newReads();
  expect(await Promise.all([get(), get()])).toEqual([1, 1]);
  expect(await get()).toBe(1);
  reads.forget('a');
  expect(await get()).toBe(2);
  reads.forgetAll();
  expect(await get()).toBe(3);
  reads.set('a', 7);
  expect(await get()).toBe(7);
});

test('reads again after a moment', async () => {
  const { get } = newReads({ forMs: 0 });
  expect([await get(), await get()]).toEqual([1, 2]);
});

test('caches neither failures nor values that it must not keep', async () => {
  const { reads, get } = newReads({ keeps: (value) => value > 1 });
  const fails = async () => await reads.get('a', async () => await Promise.reject(new Error('down')));
  await expect(fails()).rejects.toThrow('down');
  expect([await get(), await get(), await get()]).toEqual([1, 2, 2]);
});

test('forgets a read that fails late, but not a value that was set after it', async () => {
  const { reads, get } = newReads();
  const { promise, reject } = Promise.withResolvers<number>();
  const late = reads.get('a', async () => await promise);
  reads.set('a', 5);
  reject(new Error('late'));
  await expect(late).rejects.toThrow('late');
  expect(await get()).toBe(5);
});
