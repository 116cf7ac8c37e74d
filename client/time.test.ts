import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newTimeLimit } from './time.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([2 ** 31, Number.POSITIVE_INFINITY])(
  'a limit of %d ms, which is too long for a timer, is not over at once',
  (limitMs) => {
    const limit = newTimeLimit('Too late', undefined);
    limit.restart(limitMs);
    vi.advanceTimersByTime(86_400_000);
    expect(limit.signal.aborted).toBe(false);
    limit.end();
  },
);
