import type { Clock } from '../clock/clock.ts';
import type { Log } from './log.ts';

/**
 * Catches what callbacks of events and timers throw. Nothing above such a callback catches, so an error there would end the
 * process, and with it every session.
 */
export class LastCatch {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** A callback that never throws: an error is logged, and `cut` ends the work that the callback belongs to. */
  around<Args extends readonly unknown[]>(
    callback: (...args: Args) => unknown,
    cut?: (...args: Args) => unknown,
  ): (...args: Args) => void {
    return (...args) => {
      try {
        const result = callback(...args);
        if (result instanceof Promise) result.catch((error: unknown) => this.#catch(error, cut, args));
      } catch (error) {
        this.#catch(error, cut, args);
      }
    };
  }

  /** The clock, with this catch around every action. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      after: (delayMs, action) => clock.after(delayMs, this.around(action)),
      every: (periodMs, action) => clock.every(periodMs, this.around(action)),
      sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
    };
  }

  #catch<Args extends readonly unknown[]>(
    error: unknown,
    cut: ((...args: Args) => unknown) | undefined,
    args: Args,
  ): void {
    try {
      cut?.(...args);
      this.#log.error({ err: error }, 'A callback failed');
    } catch {
      // A log that cannot be written is no reason to end.
    }
  }
}
