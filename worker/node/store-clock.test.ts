// Takes about 10 s
import { setTimeout as delay } from 'node:timers/promises';
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

test('returns the time of the store, also after the machine’s clock was set and while the store does not answer', async () => {
  const clock = new ManualClock();
  const startMs = clock.now().getTime();
  let isAway = false;
  let passedMs = 0;
  clock.every(1_000, () => (passedMs += 1_000));
  const now = async () => {
    if (isAway) throw new StoreError('unavailable', 'The store is away');
    return new Date(startMs + 600_000 + passedMs);
  };
  const store = { now } as Store;
  using storeClock = await StoreClock.open({ clock, store, log });
  expect(storeClock.now().getTime()).toBe(startMs + 600_000);
  await clock.advance(3_000);
  expect(storeClock.now().getTime()).toBe(startMs + 603_000);
  clock.set(-3_600_000);
  await clock.advance(10_000);
  expect(storeClock.now().getTime()).toBe(startMs + 613_000);
  isAway = true;
  await clock.advance(60_000);
  expect(storeClock.now().getTime()).toBe(startMs + 673_000);
  await expect(StoreClock.open({ clock, store, log })).rejects.toThrow('away');
});

test('keeps an earlier comparison with the store if a slow answer differs by less than it took', async () => {
  const clock = new ManualClock();
  const startMs = clock.now().getTime();
  let answers = 0;
  let now = async () => new Date(startMs + 600_000);
  const counted = async () => await now().finally(() => (answers += 1));
  using storeClock = await StoreClock.open({ clock, store: { now: counted } as Store, log });
  now = async () => await delay(100, new Date(startMs + 609_950));
  await clock.advance(10_000);
  await expect.poll(() => answers).toBe(2);
  await delay(1);
  expect(storeClock.now().getTime()).toBe(startMs + 610_000);
  now = async () => await delay(100, new Date(startMs + 3_600_000));
  await clock.advance(10_000);
  await expect.poll(() => storeClock.now().getTime()).toBe(startMs + 3_600_000);
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
