import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/manual-clock.ts';
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

test('is measured once, counted on, and measured again when it is old', async () => {
  const { clock, state, counter } = openCounter();
  expect(await counter.fits('a', 5, 20)).toEqual({ fits: true, figure: 10 });
  counter.count('a', 3);
  expect(await counter.fits('a', 5, 20)).toEqual({ fits: true, figure: 13 });
  expect([state.measured, counter.known('a'), counter.known('b')]).toEqual([1, 13, 0]);
  state.truth = 14;
  await clock.advance(31_000);
  expect(await counter.fits('a', 5, 20)).toEqual({ fits: true, figure: 14 });
  expect(state.measured).toBe(2);
});

test('refuses by a fresh figure only, and does not measure for every refusal', async () => {
  const { clock, state, counter } = openCounter();
  await counter.fits('a', 0, 20);
  state.truth = 1;
  for (let i = 0; i < 5; i += 1) expect((await counter.fits('a', 15, 20)).fits).toBe(false);
  expect(state.measured).toBe(1);
  await clock.advance(3_000);
  expect(await counter.fits('a', 15, 20)).toEqual({ fits: true, figure: 1 });
});

test('those who ask at the same time share one measuring, and never the last place', async () => {
  const { state, counter } = openCounter();
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  const asked = [1, 2, 3, 4, 5].map(() => counter.reserve('a', 4, 20));
  gate.resolve();
  expect((await Promise.all(asked)).filter(({ fits }) => fits)).toHaveLength(2);
  expect([state.measured, counter.known('a')]).toEqual([1, 18]);
});

test('what is counted while it is measured is not lost', async () => {
  const { clock, state, counter } = openCounter();
  await counter.fits('a', 0, 20);
  counter.count('a', 2);
  await clock.advance(31_000);
  const gate = Promise.withResolvers<void>();
  Object.assign(state, { gate: gate.promise, truth: 12 });
  const asked = counter.fits('a', 0, 20);
  counter.count('a', 3);
  gate.resolve();
  expect(await asked).toEqual({ fits: true, figure: 15 });
});

test('what cannot be measured is tried again', async () => {
  const clock = new ManualClock();
  let works = false;
  const counter = new UsageCounter(clock, async () =>
    works ? 1 : await Promise.reject(new Error('The store is away')),
  );
  await expect(counter.fits('a', 0, 20)).rejects.toThrow('away');
  works = true;
  expect(await counter.fits('a', 0, 20)).toEqual({ fits: true, figure: 1 });
});
