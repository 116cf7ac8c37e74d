import { expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { TimeoutError, settledWithin, withTimeout } from './with-timeout.ts';

const never = async () => await new Promise<never>(() => {});

test('work that finishes in time keeps its own outcome', async () => {
  const clock = new ManualClock(new Date());
  expect(await withTimeout({ clock, ms: 10 }, async () => 'done')).toBe('done');
  const failing = withTimeout({ clock, ms: 10 }, async () => await Promise.reject(new Error('failed')));
  await expect(failing).rejects.toThrow('failed');
});

test('work that takes too long is aborted, and rejects', async () => {
  const clock = new ManualClock(new Date());
  let received: AbortSignal | undefined;
  const late = withTimeout({ clock, ms: 10, message: 'Too late' }, async (signal) => {
    received = signal;
    return await never();
  });
  const problem = late.catch((error: unknown) => error);
  await clock.advance(9);
  expect(received?.aborted).toBe(false);
  await clock.advance(1);
  expect(received?.aborted).toBe(true);
  expect(await problem).toEqual(new TimeoutError('Too late'));
});

test('a signal ends the wait early with its reason, even if it has aborted before', async () => {
  const clock = new ManualClock(new Date());
  const leaving = new AbortController();
  const waiting = withTimeout({ clock, ms: 10, signal: leaving.signal }, never);
  leaving.abort(new Error('left'));
  await expect(waiting).rejects.toThrow('left');
  const failed = async () => await Promise.reject(new Error('handled all the same'));
  await expect(withTimeout({ clock, ms: 10, signal: leaving.signal }, failed)).rejects.toThrow('left');
});

test('settledWithin never rejects', async () => {
  await expect(settledWithin({ ms: 1 }, never)).resolves.toBeUndefined();
  const failed = async () => await Promise.reject(new Error('failed'));
  await expect(settledWithin({ ms: 1_000 }, failed)).resolves.toBeUndefined();
});
