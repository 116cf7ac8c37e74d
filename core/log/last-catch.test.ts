import { expect, test } from 'vitest';
import { ManualClock } from '../clock/manual-clock.ts';
import { LastCatch } from './last-catch.ts';
import { openLog, silentLog } from './log.ts';

const broken = () => {
  throw new Error('broken');
};

test('an error in a callback is logged, and ends the work that it belongs to', async () => {
  const lines: string[] = [];
  const log = openLog('error', { write: (line: string) => void lines.push(line) });
  const cut: string[] = [];
  const later = async (_name: string) => await Promise.reject(new Error('broken later'));
  const now = (_name: string) => broken();
  for (const callback of [now, later]) new LastCatch(log).around(callback, (name) => cut.push(name))(callback.name);
  await new Promise(setImmediate);
  expect(cut).toEqual(['now', 'later']);
  expect(lines.map((line) => (JSON.parse(line) as { err: { message: string } }).err.message)).toEqual([
    'broken',
    'broken later',
  ]);
});

test('neither a cut that fails nor a log that fails ends anything', () => {
  const log = silentLog();
  log.error = broken;
  expect(new LastCatch(log).around(broken, broken)).not.toThrow();
  expect(new LastCatch(silentLog()).around(broken, broken)).not.toThrow();
});

test('timers go on after an error', async () => {
  const clock = new ManualClock(new Date(0));
  const caught = new LastCatch(silentLog()).clock(clock);
  let calls = 0;
  const action = () => {
    calls += 1;
    throw new Error('broken');
  };
  caught.after(10, action);
  using _ = caught.every(10, action);
  await clock.advance(30);
  expect(calls).toBe(4);
  expect(caught.now().getTime()).toBe(30);
});
