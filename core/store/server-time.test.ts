import { expect, test } from 'vitest';
import { ServerTime } from './store-time.ts';

/** A server whose clock is an hour ahead, and clocks of our own that a test moves. */
function world(roundTripMs = 10) {
  const state = { steadyMs: 1_000, wallMs: 5_000_000, asked: 0, roundTripMs, fails: false };
  const advance = (byMs: number) => {
    state.steadyMs += byMs;
    state.wallMs += byMs;
  };
  const ask = async () => {
    state.asked += 1;
    if (state.fails) throw new Error('Away');
    advance(state.roundTripMs / 2);
    const time = new Date(state.wallMs + 3_600_000);
    advance(state.roundTripMs / 2);
    return time;
  };
  const time = new ServerTime(ask, { steadyMs: () => state.steadyMs, wallMs: () => state.wallMs });
  const errorMs = async () => (await time.now()).getTime() - state.wallMs - 3_600_000;
  return { state, advance, time, errorMs };
}

test('the time is the server’s, and one question serves for some seconds', async () => {
  const { state, advance, errorMs } = world();
  for (let second = 0; second < 5; second += 1) {
    expect(await errorMs()).toBe(0);
    advance(900);
  }
  expect(state.asked).toBe(1);
  advance(1_000);
  expect(await errorMs()).toBe(0);
  expect(state.asked).toBe(2);
});

test('callers at the same time share one question', async () => {
  const { state, time } = world();
  await Promise.all([time.now(), time.now(), time.now()]);
  expect(state.asked).toBe(1);
});

test('an answer that took long serves once', async () => {
  const { state, time } = world(1_000);
  await time.now();
  await time.now();
  expect(state.asked).toBe(2);
});

test('a machine that slept asks again', async () => {
  const { state, errorMs } = world();
  await errorMs();
  state.wallMs += 30_000;
  expect(await errorMs()).toBe(0);
  expect(state.asked).toBe(2);
});

test('without a server there is no time, until it answers again', async () => {
  const { state, advance, time, errorMs } = world();
  await time.now();
  advance(6_000);
  state.fails = true;
  await expect(time.now()).rejects.toThrow('Away');
  state.fails = false;
  expect(await errorMs()).toBe(0);
});
