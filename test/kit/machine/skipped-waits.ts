import { onTestFinished, vi } from 'vitest';

/**
 * Until the end of the test, timers of `ms` to `ms + 100` milliseconds fire at once. For code that does not use a `Clock`. Returns
 * the delays of these timers.
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
