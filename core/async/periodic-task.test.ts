import { expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { PeriodicTask } from './periodic-task.ts';

test('runs one at a time, and disposing waits for the current run', async () => {
  const clock = new ManualClock();
  let runs = 0;
  let finish = Promise.withResolvers<void>();
  const task = new PeriodicTask(clock, 1_000, async () => {
    runs += 1;
    await finish.promise;
  });
  await clock.advance(3_000);
  expect(runs).toBe(1);
  const shared = task.run();
  finish.resolve();
  await shared;
  expect(runs).toBe(1);

  finish = Promise.withResolvers();
  await clock.advance(1_000);
  expect(runs).toBe(2);
  let isDisposed = false;
  const disposing = task[Symbol.asyncDispose]().then(() => (isDisposed = true));
  await clock.advance(5_000);
  expect([runs, isDisposed]).toStrictEqual([2, false]);
  finish.resolve();
  await disposing;
});

test('drops the error of a periodic run, and rejects for the caller of a run', async () => {
  const clock = new ManualClock();
  await using task = new PeriodicTask(clock, 1_000, async () => await Promise.reject(new Error('unreachable')));
  await clock.advance(2_000);
  await expect(task.run()).rejects.toThrow('unreachable');
});
