import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import type { Store } from '../core/store/store.ts';
import { steered } from '../test/kit/ports/steered.ts';
import { FailureLimits } from './failure-limits.ts';
import { openTestStore } from '../test/kit/ports/test-store.ts';

const failure = { id: 'tokens from 192.0.2.1', limit: { capacity: 3, seconds: 60 } };

let owned: AsyncDisposableStack;
let clock: ManualClock;
/** Calls that may write. */
let writes: number;
let store: Store;
beforeEach(async () => {
  owned = new AsyncDisposableStack();
  const real = owned.use(await openTestStore());
  clock = new ManualClock(new Date());
  writes = 0;
  store = steered(real, {
    now: () => clock.now(),
    onCall: async ({ method, run }) => {
      if (method === 'update' || method === 'insert') writes += 1;
      return await run();
    },
  });
});
afterEach(async () => await owned.disposeAsync());

test('processes count together, and a process without failures sees those of the others', async () => {
  const [one, two, three] = [new FailureLimits(store), new FailureLimits(store), new FailureLimits(store)];
  expect(await one.secondsToWait([failure])).toBe(0);
  const waits = [await one.count([failure]), await two.count([failure]), await one.count([failure])];
  expect(waits).toEqual([0, 0, 0]);
  expect(await two.count([failure])).toBe(20);
  expect(await three.secondsToWait([failure])).toBe(20);
  await clock.advance(20_000);
  expect(await three.count([failure])).toBe(0);
  expect(await three.count([failure])).toBe(20);
});

test('a flood of failures does not write once the bucket is empty', async () => {
  const limits = new FailureLimits(store);
  for (let i = 0; i < 50; i += 1) await limits.count([failure]);
  // The first finds no bucket to update, and inserts one.
  expect(writes).toBe(4);
});

test('failures of one network are not counted for another', async () => {
  const limits = new FailureLimits(store);
  for (let i = 0; i < 4; i += 1) await limits.count([failure]);
  expect(await limits.secondsToWait([{ ...failure, id: 'tokens from 192.0.2.2' }])).toBe(0);
});
