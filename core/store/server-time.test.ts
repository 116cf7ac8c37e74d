import { expect, test } from 'vitest';
import { ServerTime } from './store-time.ts';

/** A server whose clock is an hour ahead, and local clocks that a test moves. */
function openClocks(roundTripMs = 10) {
  const state = { steadyMs: 1_000, wallMs: 5_000_000, reads: 0, roundTripMs, fails: false };
  const advance = (byMs: number) => {
    state.steadyMs += byMs;
    state.wallMs += byMs;
  };
  const read = async () => {
    state.reads += 1;
    if (state.fails) throw new Error('Unavailable');
    advance(state.roundTripMs / 2);
    const time = new Date(state.wallMs + 3_600_000);
    advance(state.roundTripMs / 2);
    return time;
  };
  const time = new ServerTime(read, { steadyMs: () => state.steadyMs, wallMs: () => state.wallMs });
  const errorMs = async () => (await time.now()).getTime() - state.wallMs - 3_600_000;
  return { state, advance, time, errorMs };
}

test('the time is the server’s, and one measurement is valid for some seconds', async () => {
  const { state, advance, errorMs } = openClocks();
  for (let second = 0; second < 5; second += 1) {
    expect(await errorMs()).toBe(0);
    advance(900);
  }
  expect(state.reads).toBe(1);
  advance(1_000);
  expect(await errorMs()).toBe(0);
  expect(state.reads).toBe(2);
});

test('concurrent callers share one measurement', async () => {
  const { state, time } = openClocks();
  await Promise.all([time.now(), time.now(), time.now()]);
  expect(state.reads).toBe(1);
});

test('a measurement that took long is used once', async () => {
  const { state, time } = openClocks(1_000);
  await time.now();
  await time.now();
  expect(state.reads).toBe(2);
});

test('a machine that slept measures again', async () => {
  const { state, errorMs } = openClocks();
  await errorMs();
  state.wallMs += 30_000;
  expect(await errorMs()).toBe(0);
  expect(state.reads).toBe(2);
});

test('without a server, reading the time fails until the server answers again', async () => {
  const { state, advance, time, errorMs } = openClocks();
  await time.now();
  advance(6_000);
  state.fails = true;
  await expect(time.now()).rejects.toThrow('Unavailable');
  state.fails = false;
  expect(await errorMs()).toBe(0);
});
