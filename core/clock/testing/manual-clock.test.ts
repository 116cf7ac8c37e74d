import { expect, test } from 'vitest';
import { ManualClock } from './manual-clock.ts';

test('timers fire in the order in which they are due, at the time when they are due', async () => {
  const clock = new ManualClock(new Date(0));
  const fired: [string, number][] = [];
  clock.after(30, () => fired.push(['once', clock.now().getTime()]));
  const often = clock.every(20, () => fired.push(['often', clock.now().getTime()]));
  await clock.advance(45);
  often[Symbol.dispose]();
  await clock.advance(100);
  expect(fired).toEqual([
    ['often', 20],
    ['once', 30],
    ['often', 40],
  ]);
  expect(clock.now()).toEqual(new Date(145));
});

test('after a freeze, overdue timers run once, in order', async () => {
  const clock = new ManualClock(new Date(0));
  const fired: [string, number][] = [];
  clock.every(20, () => fired.push(['often', clock.now().getTime()]));
  clock.after(10, () => fired.push(['once', clock.now().getTime()]));
  clock.after(110, () => fired.push(['later', clock.now().getTime()]));
  await clock.freeze(100);
  await clock.advance(20);
  expect(fired).toEqual([
    ['once', 100],
    ['often', 100],
    ['later', 110],
    ['often', 120],
  ]);
});

test('setting the time of day moves no timer', async () => {
  const clock = new ManualClock(new Date(0));
  const fired: number[] = [];
  clock.after(10, () => fired.push(clock.now().getTime()));
  clock.set(1_000);
  expect([clock.now().getTime(), fired]).toEqual([1_000, []]);
  await clock.advance(10);
  expect(fired).toEqual([1_010]);
});

test('sleep ends with its time or with its signal', async () => {
  const clock = new ManualClock();
  const slept = clock.sleep(10).then(() => 'slept');
  await clock.advance(10);
  expect(await slept).toBe('slept');
  const aborting = new AbortController();
  const interrupted = clock.sleep(10, aborting.signal);
  aborting.abort(new Error('enough'));
  await expect(interrupted).rejects.toThrow('enough');
});
