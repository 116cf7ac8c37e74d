import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/manual-clock.ts';
import { Tally } from './tally.ts';

function openTally() {
  const clock = new ManualClock();
  const state = { truth: 10, measured: 0, gate: Promise.resolve() };
  const tally = new Tally(clock, async () => {
    state.measured += 1;
    const { truth } = state;
    await state.gate;
    return truth;
  });
  return { clock, state, tally };
}

test('is measured once, counted on, and measured again when it is old', async () => {
  const { clock, state, tally } = openTally();
  expect(await tally.fits('a', 5, 20)).toEqual({ fits: true, figure: 10 });
  tally.count('a', 3);
  expect(await tally.fits('a', 5, 20)).toEqual({ fits: true, figure: 13 });
  expect([state.measured, tally.known('a'), tally.known('b')]).toEqual([1, 13, 0]);
  state.truth = 14;
  await clock.advance(31_000);
  expect(await tally.fits('a', 5, 20)).toEqual({ fits: true, figure: 14 });
  expect(state.measured).toBe(2);
});

test('refuses by a fresh figure only, and does not measure for every refusal', async () => {
  const { clock, state, tally } = openTally();
  await tally.fits('a', 0, 20);
  state.truth = 1;
  for (let i = 0; i < 5; i += 1) expect((await tally.fits('a', 15, 20)).fits).toBe(false);
  expect(state.measured).toBe(1);
  await clock.advance(3_000);
  expect(await tally.fits('a', 15, 20)).toEqual({ fits: true, figure: 1 });
});

test('those who ask at the same time share one measuring, and never the last place', async () => {
  const { state, tally } = openTally();
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  const asked = [1, 2, 3, 4, 5].map(() => tally.take('a', 4, 20));
  gate.resolve();
  expect((await Promise.all(asked)).filter(({ fits }) => fits)).toHaveLength(2);
  expect([state.measured, tally.known('a')]).toEqual([1, 18]);
});

test('what is counted while it is measured is not lost', async () => {
  const { clock, state, tally } = openTally();
  await tally.fits('a', 0, 20);
  tally.count('a', 2);
  await clock.advance(31_000);
  const gate = Promise.withResolvers<void>();
  Object.assign(state, { gate: gate.promise, truth: 12 });
  const asked = tally.fits('a', 0, 20);
  tally.count('a', 3);
  gate.resolve();
  expect(await asked).toEqual({ fits: true, figure: 15 });
});

test('what cannot be measured is tried again', async () => {
  const clock = new ManualClock();
  let works = false;
  const tally = new Tally(clock, async () => (works ? 1 : await Promise.reject(new Error('The store is away'))));
  await expect(tally.fits('a', 0, 20)).rejects.toThrow('away');
  works = true;
  expect(await tally.fits('a', 0, 20)).toEqual({ fits: true, figure: 1 });
});
