import { expect, test } from 'vitest';
import { MonotonicTime } from './store-time.ts';

function openClocks() {
  const state = { steadyMs: 1_000, wallMs: 5_000_000 };
  const advance = (byMs: number) => {
    state.steadyMs += byMs;
    state.wallMs += byMs;
  };
  const time = new MonotonicTime({ steadyMs: () => state.steadyMs, wallMs: () => state.wallMs });
  return { state, advance, nowMs: () => time.now().getTime() };
}

test('the time is that of the machine, also when its clock is set forward', () => {
  const { state, advance, nowMs } = openClocks();
  advance(500);
  expect(nowMs()).toBe(state.wallMs);
  state.wallMs += 3_600_000;
  expect(nowMs()).toBe(state.wallMs);
});

test('when the clock is set back, time continues at half speed until the clock has caught up', () => {
  const { state, advance, nowMs } = openClocks();
  const before = nowMs();
  state.wallMs -= 60_000;
  expect(nowMs()).toBe(before);
  advance(20_000);
  expect(nowMs()).toBe(before + 10_000);
  advance(20_000);
  expect(nowMs()).toBe(before + 20_000);
  advance(100_000);
  expect(nowMs()).toBe(state.wallMs);
});

test('it never runs backwards', () => {
  const { state, advance, nowMs } = openClocks();
  const seen: number[] = [];
  for (const step of [0, 7_000, -90_000, 30_000, -1, 1, -3_600_000]) {
    state.wallMs += step;
    for (let i = 0; i < 5; i += 1) {
      advance(13);
      seen.push(nowMs());
    }
  }
  expect(seen).toEqual(seen.toSorted((one, other) => one - other));
});
