import type { Clock } from '../clock/clock.ts';
import type { Log } from './log.ts';

/**
 * Catches the errors of callbacks of events and timers. Nothing above such a callback catches, so an error there would end the
 * process, and with it every session.
 */
export class ErrorBoundary {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** A callback that never throws: an error is logged, and `abort` ends the work that the callback belongs to. */
  wrap<Args extends readonly unknown[]>(
    callback: (...args: Args) => unknown,
    abort?: (...args: Args) => unknown,
  ): (...args: Args) => void {
    const onError = (error: unknown, args: Args) => this.failed(error, () => abort?.(...args));
    return (...args) => {
      try {
        const result = callback(...args);
        if (result instanceof Promise) result.catch((error: unknown) => onError(error, args));
      } catch (error) {
        onError(error, args);
      }
    };
  }

  /** For a callback that catches its errors itself: logs one, and `abort` ends the work that the callback belongs to. Never throws. */
  failed(error: unknown, abort: () => unknown): void {
    try {
      abort();
      this.#log.error({ err: error }, 'A callback failed');
    } catch {
      // A failing log must not end the process.
    }
  }

  /** The clock, with this boundary around every action. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      after: (delayMs, action) => clock.after(delayMs, this.wrap(action)),
      every: (periodMs, action) => clock.every(periodMs, this.wrap(action)),
      sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
    };
  }
}
