import { PeriodicTask } from '../core/async/periodic-task.ts';
import { settledWithin } from '../core/async/with-timeout.ts';
import type { Clock } from '../core/clock/clock.ts';

/** For pending writes and calls to the engine. The next worker completes the rest. */
const closeWithinMs = 5_000;

/** Waits for the last work of a part of the worker that closes, within a time limit. Never rejects. */
export async function settledOnClose(work: Promise<unknown> | undefined): Promise<void> {
  await settledWithin({ ms: closeWithinMs }, async () => await work);
}

/** Runs a task periodically, as `PeriodicTask` does. Disposing waits for the current run, within a time limit. */
export function repeatUntilClosed(clock: Clock, periodMs: number, task: () => Promise<void>): AsyncDisposable {
  const periodic = new PeriodicTask(clock, periodMs, task);
  return { [Symbol.asyncDispose]: async () => await settledOnClose(periodic[Symbol.asyncDispose]()) };
}
