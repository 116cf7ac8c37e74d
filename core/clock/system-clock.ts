import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => new Date(),
  after: (delayMs, action) => {
    const timer = setTimeout(action, delayMs).unref();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
  every: (periodMs, action) => {
    const timer = setInterval(action, periodMs).unref();
    return { [Symbol.dispose]: () => clearInterval(timer) };
  },
  sleep: async (delayMs, signal) => {
    try {
      await sleep(delayMs, undefined, signal ? { signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
