import type { Clock } from '../../core/clock/clock.ts';

/** How soon it is noticed that the machine was asleep. */
const lookEveryMs = 1_000;

/**
 * Waits until something is due. Timers stand still while a machine sleeps, the time of day does not: then it is due at once.
 * Rejects with the signal's reason when it aborts.
 */
export async function untilDue(clock: Clock, waitMs: number, signal: AbortSignal): Promise<void> {
  const dueMs = clock.now().getTime() + waitMs;
  for (let leftMs = waitMs; leftMs > 0 && clock.now().getTime() < dueMs; leftMs -= lookEveryMs) {
    await clock.sleep(Math.min(leftMs, lookEveryMs), signal);
  }
}
