import { onTestFinished, vi } from 'vitest';

/**
 * Ends waits of code that has no clock at once, up to the end of the test, if their length is `ms` or up to 100 ms more. Returns the
 * waits that began.
 */
export function skipWaits(ms: number): number[] {
  const waits: number[] = [];
  const real = globalThis.setTimeout;
  const skipping = (run: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) => {
    const isSkipped = delayMs >= ms && delayMs < ms + 100;
    if (isSkipped) waits.push(delayMs);
    return real(run, isSkipped ? 0 : delayMs, ...args);
  };
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(skipping as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
  return waits;
}
