import { expect, test } from 'vitest';
import { collectLog } from '../../test/kit/collect-log.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { ErrorBoundary } from './error-boundary.ts';
import { silentLog } from './log.ts';

const broken = () => {
  throw new Error('broken');
};

test('logs an error of a callback and aborts the work that it belongs to', async () => {
  const { log, lines } = collectLog('error');
  const aborted: string[] = [];
  const later = async (_name: string) => await Promise.reject(new Error('broken later'));
  const now = (_name: string) => broken();
  for (const callback of [now, later])
    new ErrorBoundary(log).wrap(callback, (name) => aborted.push(name))(callback.name);
  await new Promise(setImmediate);
  expect(aborted).toEqual(['now', 'later']);
  expect(lines.map(({ err }) => err?.message)).toEqual(['broken', 'broken later']);
});

test('survives a failing abort and a failing log', () => {
  const log = silentLog();
  log.error = broken;
  expect(new ErrorBoundary(log).wrap(broken, broken)).not.toThrow();
  expect(new ErrorBoundary(silentLog()).wrap(broken, broken)).not.toThrow();
});

test('timers continue after an error', async () => {
  const clock = new ManualClock(new Date(0));
  const guarded = new ErrorBoundary(silentLog()).clock(clock);
  let calls = 0;
  const action = () => {
    calls += 1;
    throw new Error('broken');
  };
  guarded.after(10, action);
  using _ = guarded.every(10, action);
  await clock.advance(30);
  expect(calls).toBe(4);
  expect(guarded.now().getTime()).toBe(30);
});
