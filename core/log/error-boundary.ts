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
    const onError = (error: unknown, args: Args) => {
      try {
        abort?.(...args);
        this.#log.error({ err: error }, 'A callback failed');
      } catch {
        // A failing log must not end the process.
      }
    };
    return (...args) => {
      try {
        const result = callback(...args);
        if (result instanceof Promise) result.catch((error: unknown) => onError(error, args));
      } catch (error) {
        onError(error, args);
      }
    };
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
