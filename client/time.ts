/** Time limits and waits, which abort signals end early. */
import { BerthError } from './errors.ts';

/** A time limit that also ends when a signal aborts. */
export interface TimeLimit {
  /** Aborts with a `BerthError` of the code `TimedOut`, or with the reason of the other signal. */
  readonly signal: AbortSignal;
  /** Starts the timer, or restarts it. */
  restart(limitMs: number): void;
  pause(): void;
  /** Stops the timer, and forgets the other signal. */
  end(): void;
}

/** The longest delay of a timer, 25 days. A timer with a longer one fires at once. */
const longestTimerMs = 2 ** 31 - 1;

/** Returns a time limit whose timer has not started. */
export function newTimeLimit(message: string, signal: AbortSignal | undefined): TimeLimit {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const forward = () => controller.abort(signal?.reason);
  if (signal?.aborted) forward();
  signal?.addEventListener('abort', forward, { once: true });
  return {
    signal: controller.signal,
    restart: (limitMs) => {
      clearTimeout(timer);
      const delayMs = Math.min(limitMs, longestTimerMs);
      timer = setTimeout(() => controller.abort(new BerthError('TimedOut', message)), delayMs);
    },
    pause: () => clearTimeout(timer),
    end: () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', forward);
    },
  };
}

/** Waits. Rejects with the reason of the signal when that aborts. */
export async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
