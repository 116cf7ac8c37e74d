import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from './system-clock.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const dayMs = 24 * 60 * 60 * 1000;

test('waits for a time that is longer than the longest timer of Node', () => {
  const action = vi.fn();
  systemClock.after(60 * dayMs, action);
  vi.advanceTimersByTime(60 * dayMs - 1);
  expect(action).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(action).toHaveBeenCalledOnce();
});

test('such a wait ends at any time', () => {
  const action = vi.fn();
  const wait = systemClock.after(60 * dayMs, action);
  vi.advanceTimersByTime(50 * dayMs);
  wait[Symbol.dispose]();
  vi.advanceTimersByTime(50 * dayMs);
  expect(action).not.toHaveBeenCalled();
});
