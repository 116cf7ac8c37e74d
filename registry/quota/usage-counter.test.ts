import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { UsageCounter } from './usage-counter.ts';

function openCounter() {
  const clock = new ManualClock();
  const state = { truth: 10, measured: 0, gate: Promise.resolve() };
  const counter = new UsageCounter(clock, async () => {
    state.measured += 1;
    const { truth } = state;
    await state.gate;
    return truth;
  });
  return { clock, state, counter };
}

test('measures once, counts changes, and measures again when the measurement is old', async () => {
  const { clock, state, counter } = openCounter();
  expect(await counter.fits('a', 5, 20)).toEqual({ fits: true, usage: 10 });
  counter.count('a', 3);
  expect(await counter.fits('a', 5, 20)).toEqual({ fits: true, usage: 13 });
  expect([state.measured, counter.known('a'), counter.known('b')]).toEqual([1, 13, 0]);
  state.truth = 14;
  await clock.advance(31_000);
  expect(await counter.fits('a', 5, 20)).toEqual({ fits: true, usage: 14 });
  expect(state.measured).toBe(2);
});

test('rejects only by a recent measurement, and does not measure for every rejection', async () => {
  const { clock, state, counter } = openCounter();
  await counter.fits('a', 0, 20);
  state.truth = 1;
  for (let i = 0; i < 5; i += 1) expect((await counter.fits('a', 15, 20)).fits).toBe(false);
  expect(state.measured).toBe(1);
  await clock.advance(3_000);
  expect(await counter.fits('a', 15, 20)).toEqual({ fits: true, usage: 1 });
});

test('concurrent requests share one measurement, and do not exceed the limit', async () => {
  const { state, counter } = openCounter();
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  const asked = [1, 2, 3, 4, 5].map(() => counter.reserve('a', 4, 20));
  gate.resolve();
  expect((await Promise.all(asked)).filter(({ fits }) => fits)).toHaveLength(2);
  expect([state.measured, counter.known('a')]).toEqual([1, 18]);
});

test('changes during a measurement are not lost', async () => {
  const { clock, state, counter } = openCounter();
  await counter.fits('a', 0, 20);
  counter.count('a', 2);
  await clock.advance(31_000);
  const gate = Promise.withResolvers<void>();
  Object.assign(state, { gate: gate.promise, truth: 12 });
  const asked = counter.fits('a', 0, 20);
  counter.count('a', 3);
  gate.resolve();
  expect(await asked).toEqual({ fits: true, usage: 15 });
});

test('a measurement that fails is retried', async () => {
  const clock = new ManualClock();
  let works = false;
  const counter = new UsageCounter(clock, async () =>
    works ? 1 : await Promise.reject(new Error('The store is unavailable')),
  );
  await expect(counter.fits('a', 0, 20)).rejects.toThrow('unavailable');
  works = true;
  expect(await counter.fits('a', 0, 20)).toEqual({ fits: true, usage: 1 });
});
