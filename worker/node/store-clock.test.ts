// Takes about 10 s
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { StoreError } from '../../core/store/store.ts';
import type { Store } from '../../core/store/store.ts';
import { StoreClock } from './store-clock.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { openTestPlatform, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import type { Worker } from '../worker.ts';

const log = silentLog();

test('returns the time of the store, also right after the machine’s clock was set and while the store does not answer', async () => {
  const clock = new ManualClock();
  const startMs = clock.now().getTime();
  let isAway = false;
  let passedMs = 0;
  clock.every(1_000, () => (passedMs += 1_000));
  const now = async () => {
    if (isAway) throw new StoreError('unavailable', 'The store is away');
    return new Date(startMs + 600_000 + passedMs);
  };
  const clocks = { steadyMs: () => passedMs };
  const deps = { clock, store: { now } as Store, log, clocks };
  using storeClock = await StoreClock.open(deps);
  expect(storeClock.now().getTime()).toBe(startMs + 600_000);
  await clock.advance(3_000);
  for (const setByMs of [3_600_000, -7_200_000]) {
    clock.set(setByMs);
    expect(storeClock.now().getTime()).toBe(startMs + 603_000);
  }
  await clock.advance(10_000);
  expect(storeClock.now().getTime()).toBe(startMs + 613_000);
  isAway = true;
  await clock.advance(60_000);
  expect(storeClock.now().getTime()).toBe(startMs + 673_000);
  await expect(StoreClock.open(deps)).rejects.toThrow('away');
});

test('keeps an earlier comparison with the store if a slow answer differs by less than it took', async () => {
  const clock = new ManualClock();
  let steadyMs = 0;
  let answer = { storeMs: 600_000, tookMs: 0 };
  const now = async () => {
    steadyMs += answer.tookMs;
    return new Date(answer.storeMs);
  };
  const clocks = { steadyMs: () => steadyMs };
  using storeClock = await StoreClock.open({ clock, store: { now } as Store, log, clocks });
  steadyMs = 9_900;
  answer = { storeMs: 609_950, tookMs: 100 };
  await clock.advance(10_000);
  expect([steadyMs, storeClock.now().getTime()]).toEqual([10_000, 610_000]);
  steadyMs = 20_000;
  answer = { storeMs: 3_600_000, tookMs: 100 };
  await clock.advance(10_000);
  expect(storeClock.now().getTime()).toBe(3_600_000);
});

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`on a node whose clock is wrong ${why ?? ''}`, () => {
  let platform: TestPlatform;
  beforeAll(async () => void (platform = await openTestPlatform()));
  afterAll(async () => await platform?.[Symbol.asyncDispose]());

  it.each([
    ['ahead', 600_000],
    ['behind', -600_000],
  ])('a backend starts, is swept in time and has a true history, with the clock %s', async (_what, shiftMs) => {
    const store = steered(platform.store, { isShared: true });
    const clock = { ...bound(), now: () => new Date(Date.now() + shiftMs) };
    await using _worker: Worker = await platform.openWorker({ store, clock });
    // Longer than the period of the sweep.
    const imageDigest = await platform.images.add('sleep 2; exec httpd -f -p $PORT');
    const scheduledAt = Date.now();
    const id = await platform.schedule({ imageDigest, lifetimeLimitSeconds: 1 });
    await platform.until(id, 'ready');
    const { history } = await platform.until(id, 'terminated');
    expect(history.at(-1)).toMatchObject({ terminationReason: 'swept' });
    for (const { time } of history) {
      expect(time.getTime()).toBeGreaterThanOrEqual(scheduledAt);
      expect(time.getTime()).toBeLessThanOrEqual(Date.now() + 100);
    }
  });
});

function bound() {
  return {
    after: systemClock.after.bind(systemClock),
    every: systemClock.every.bind(systemClock),
    sleep: systemClock.sleep.bind(systemClock),
  };
}
