import { expect, test } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { repeatUntilClosed } from './close.ts';
import { expectCloseInFiveSeconds } from './testing/closing.ts';

test('a run of a periodic task that does not end delays the close for five seconds only', async () => {
  const clock = new ManualClock();
  let runs = 0;
  const endless = repeatUntilClosed(clock, 1_000, async () => {
    runs += 1;
    await new Promise(() => {});
  });
  await clock.advance(1_000);
  expect(runs).toBe(1);
  await expectCloseInFiveSeconds(endless);
});
