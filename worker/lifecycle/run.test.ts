import { expect, test } from 'vitest';
import { systemClock } from '../../core/clock/system-clock.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { silentLog } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { newBackend } from '../../model/backend.ts';
import { Run } from './run.ts';
import { Statuses } from './statuses.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';

const backend = newBackend(backendPlan(), new Date());

/** The run of a backend whose document is not written. */
function newRun(closing = new AbortController().signal): Run {
  const log = silentLog();
  const deps = { store: {} as Store, bus: openInProcessBus({ log }), clock: systemClock, log };
  return new Run(backend, { statuses: new Statuses(deps, backend.id, closing), closing });
}

test('a stop is soft until it is made hard', () => {
  const run = newRun();
  expect([run.stopKind, run.hardStop.aborted]).toEqual([undefined, false]);
  run.beginStop('soft');
  expect([run.stopKind, run.hardStop.aborted]).toEqual(['soft', false]);
  run.hardenStop();
  expect([run.stopKind, run.hardStop.aborted]).toEqual(['hard', true]);
});

test('endStartUp cancels the start-up and waits for it', async () => {
  const run = newRun();
  const steps: string[] = [];
  const { promise: cancelled, resolve } = Promise.withResolvers<void>();
  run.startUpSignal.addEventListener('abort', () => resolve());
  run.startUp(cancelled.then(() => void steps.push('start-up has ended')));
  await run.endStartUp();
  steps.push('ended');
  expect(steps).toEqual(['start-up has ended', 'ended']);
  expect(run.signal.aborted).toBe(false);
});

test('pauses of the start time add up', async () => {
  const clock = new ManualClock();
  const run = newRun();
  for (const ms of [300, 500]) {
    using _pause = run.pauseStartTime(clock);
    await clock.advance(ms);
    expect(run.isStartTimePaused).toBe(true);
  }
  expect([run.isStartTimePaused, run.pausedMs]).toEqual([false, 800]);
});

test('the first failure and the peak of memory usage are kept', () => {
  const run = newRun();
  run.fail('first');
  run.fail('second');
  for (const bytes of [10, 30, 20]) run.memoryUsed(bytes);
  expect([run.failure, run.peakMemoryBytes]).toEqual(['first', 30]);
});

test('a run is finalized once, and its container is gone when it is finished', async () => {
  const run = newRun();
  let times = 0;
  const finalize = () => run.finalize(async () => void (times += 1));
  await Promise.all([finalize(), finalize()]);
  expect([times, run.isFinalizing, run.isGone]).toEqual([1, true, false]);
  run.finish();
  await run.gone;
  expect([run.isGone, run.signal.aborted]).toEqual([true, true]);
});
