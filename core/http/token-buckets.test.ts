import { expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { TokenBuckets } from './token-buckets.ts';

test('a bucket is full at first, and refills over time up to its size', async () => {
  const clock = new ManualClock();
  const buckets = new TokenBuckets(clock, { capacity: 3, perSecond: 0.5 });
  const taken = () => [1, 2, 3, 4, 5].filter(() => buckets.take('a')).length;
  expect(buckets.secondsUntilNext('a')).toBe(0);
  expect(taken()).toBe(3);
  expect(buckets.secondsUntilNext('a')).toBe(2);
  await clock.advance(1_000);
  expect([buckets.take('a'), buckets.secondsUntilNext('a')]).toEqual([false, 1]);
  await clock.advance(1_000);
  expect([buckets.take('a'), buckets.take('a')]).toEqual([true, false]);
  await clock.advance(3_600_000);
  expect(taken()).toBe(3);
});

test('buckets are independent of each other', () => {
  const buckets = new TokenBuckets(new ManualClock(), { capacity: 1, perSecond: 1 });
  expect([buckets.take('a'), buckets.take('a'), buckets.take('b')]).toEqual([true, false, true]);
});
