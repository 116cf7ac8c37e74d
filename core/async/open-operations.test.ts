import { expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { OpenOperations } from './open-operations.ts';

test('an owner waits for the operations that are under way, whether they succeed or fail', async () => {
  const operations = new OpenOperations();
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const results = Promise.allSettled([operations.run(() => first.promise), operations.run(() => second.promise)]);
  let isSettled = false;
  const settled = operations.settled().then(() => (isSettled = true));
  first.resolve();
  await first.promise;
  expect(isSettled).toBe(false);
  second.reject(new Error('failed'));
  await settled;
  expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
});

test('an operation that never settles delays its owner only until the limit', async () => {
  const clock = new ManualClock();
  const operations = new OpenOperations();
  void operations.run(() => new Promise<void>(() => {}));
  const settled = operations.settled({ ms: 1_000, clock });
  await clock.advance(1_000);
  await expect(settled).resolves.toBeUndefined();
});
