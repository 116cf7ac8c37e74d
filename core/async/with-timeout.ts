import type { Clock } from '../clock/clock.ts';
import { abortable } from './abortable.ts';

/** Work did not end in time. It may still go on. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

export interface TimeLimit {
  readonly ms: number;
  /** Default: the process's own timers, which keep it alive: for what is waited for while the process closes. */
  readonly clock?: Pick<Clock, 'after'>;
  /** Ends the waiting earlier. */
  readonly signal?: AbortSignal | undefined;
  /** Of the `TimeoutError`. */
  readonly message?: string;
}

/**
 * Waits for work for a limited time. Rejects with a `TimeoutError` when that is over, and with the reason of the limit's signal
 * when it aborts. What the work results in after that is dropped, so it must return nothing that has to be closed.
 *
 * @param work - receives a signal that aborts when its result is no longer awaited
 */
export async function withTimeout<T>(limit: TimeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { ms, clock = processTimers, signal, message = `Not done within ${ms} ms` } = limit;
  const late = new AbortController();
  using _timer = clock.after(ms, () => late.abort(new TimeoutError(message)));
  const over = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  return await abortable(work(over), over);
}

/** As `withTimeout`, for work whose result does not matter to the caller. Never rejects. */
export async function settledWithin(limit: TimeLimit, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  await withTimeout(limit, work).catch(() => {});
}

const processTimers: Pick<Clock, 'after'> = {
  after: (delayMs, action) => {
    const timer = setTimeout(action, delayMs);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
