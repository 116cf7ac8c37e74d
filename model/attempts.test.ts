import { expect, test } from 'vitest';
import { attemptBuckets, countAttempts, withoutAttempt, withAttempt, uncountAttempts } from './attempts.ts';
import { openTestStore } from '../test/kit/ports/test-store.ts';

const limit = { capacity: 3, seconds: 60 };
const start = new Date('2026-01-01T00:00:00.000Z');
const after = (seconds: number) => new Date(start.getTime() + seconds * 1000);

function takeTimes(count: number, now = start) {
  let taken = withAttempt(undefined, limit, { id: 'a', now });
  for (let i = 1; i < count; i += 1) taken = withAttempt(taken.bucket, limit, { id: 'a', now });
  return taken;
}

test('as many attempts as the capacity may be made at once, then one at a time', () => {
  expect(takeTimes(3).waitSeconds).toBe(0);
  const { bucket, waitSeconds } = takeTimes(4);
  expect(waitSeconds).toBe(20);
  expect(withAttempt(bucket, limit, { id: 'a', now: after(19) }).waitSeconds).toBe(1);
  const next = withAttempt(bucket, limit, { id: 'a', now: after(20) });
  expect(next.waitSeconds).toBe(0);
  expect(withAttempt(next.bucket, limit, { id: 'a', now: after(20) }).waitSeconds).toBe(20);
});

test('a rejected attempt changes nothing', () => {
  const { bucket } = takeTimes(3);
  expect(withAttempt(bucket, limit, { id: 'a', now: after(1) }).bucket).toBe(bucket);
});

test('a bucket refills up to its capacity, and expires when it is full', () => {
  const { bucket } = takeTimes(3);
  expect(bucket.endsAt).toEqual(after(60));
  expect(withAttempt(bucket, limit, { id: 'a', now: after(1000) }).bucket.left).toBe(2);
});

test('a clock that is set back does not make waits longer', () => {
  const { bucket } = takeTimes(3, after(1000));
  expect(withAttempt(bucket, limit, { id: 'a', now: start }).waitSeconds).toBe(20);
});

test('an attempt that was uncounted can be made again', () => {
  const returned = withoutAttempt(takeTimes(3).bucket, limit, start);
  expect(withAttempt(returned, limit, { id: 'a', now: start }).waitSeconds).toBe(0);
});

test('attempts count in all their buckets, or in none if one of them has none left', async () => {
  await using store = await openTestStore();
  const [own, shared] = [
    { id: 'own', limit: { capacity: 10, seconds: 60 } },
    { id: 'shared', limit: { capacity: 2, seconds: 60 } },
  ];
  const count = async () => await countAttempts(store, [own, shared], start);
  expect(await Promise.all([count(), count()])).toEqual([0, 0]);
  expect(await count()).toBe(30);
  const left = async (id: string) => (await store.get(attemptBuckets, id))?.left;
  expect([await left('own'), await left('shared')]).toEqual([8, 0]);
  await uncountAttempts(store, [own, shared], start);
  expect([await left('own'), await left('shared')]).toEqual([9, 1]);
});
