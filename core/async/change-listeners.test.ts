import { expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { ChangeListeners } from './change-listeners.ts';

const { signal } = new AbortController();

test('a listener is woken by changes of its own ID, including changes before it waits', async () => {
  const changes = new ChangeListeners(new ManualClock(new Date()));
  using listener = changes.listen('one');
  changes.notify('one');
  changes.notify('one');
  await listener.next(1_000, signal);
  let isWoken = false;
  const next = listener.next(1_000, signal).then(() => (isWoken = true));
  changes.notify('other');
  await Promise.resolve();
  expect(isWoken).toBe(false);
  changes.notify('one');
  await next;
});

test('a listener is woken after a while without changes', async () => {
  const clock = new ManualClock(new Date());
  using listener = new ChangeListeners(clock).listen('one');
  const next = listener.next(1_000, signal);
  await clock.advance(1_000);
  await expect(next).resolves.toBeUndefined();
});

test('an abort ends the wait', async () => {
  using listener = new ChangeListeners(new ManualClock(new Date())).listen('one');
  const leaving = new AbortController();
  const next = listener.next(1_000, leaving.signal);
  leaving.abort(new Error('left'));
  await expect(next).rejects.toThrow('left');
});
