import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { repeatUntilClosed } from './close.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('a run of a periodic task that does not end delays the close for five seconds only', async () => {
  const clock = new ManualClock();
  let runs = 0;
  const endless = repeatUntilClosed(clock, 1_000, async () => {
    runs += 1;
    await new Promise(() => {});
  });
  await clock.advance(1_000);
  expect(runs).toBe(1);
  let isClosed = false;
  const closed = (async () => {
    await endless[Symbol.asyncDispose]();
    isClosed = true;
  })();
  await vi.advanceTimersByTimeAsync(4_999);
  expect(isClosed).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await closed;
});
