import type { Clock } from '../clock/clock.ts';
import { abortable, eitherSignal } from './abortable.ts';

/** Work did not finish in time. It may still be running. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

export interface TimeLimit {
  readonly ms: number;
  /** Default: timers that keep the process alive, for work that is awaited while the process closes. */
  readonly clock?: Pick<Clock, 'after'>;
  /** Ends the wait early. */
  readonly signal?: AbortSignal | undefined;
  /** The message of the `TimeoutError`. */
  readonly message?: string;
}

/**
 * Waits for work for a limited time. Rejects with a `TimeoutError` after that, and with the reason of the limit's signal when it
 * aborts. A later result is dropped, so the work must not return anything that has to be closed.
 *
 * @param work - receives a signal that aborts when its result is no longer awaited
 */
export async function withTimeout<T>(limit: TimeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { ms, clock = processTimers, signal, message = `Not done within ${ms} ms` } = limit;
  const late = new AbortController();
  using _timer = clock.after(ms, () => late.abort(new TimeoutError(message)));
  const ended = eitherSignal(signal, late.signal);
  return await abortable(work(ended), ended);
}

/** Waits for work as `withTimeout` does, and ignores its result. Never rejects. */
export async function settledWithin(limit: TimeLimit, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  await withTimeout(limit, work).catch(() => {});
}

const processTimers: Pick<Clock, 'after'> = {
  after: (delayMs, action) => {
    const timer = setTimeout(action, delayMs);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
