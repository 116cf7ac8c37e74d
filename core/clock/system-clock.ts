import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** Node calls a timer with a longer delay after 1 ms. */
const maxDelayMs = 2 ** 31 - 1;

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => new Date(),
  after: (delayMs, action) => {
    let timer: NodeJS.Timeout;
    const waitFor = (leftMs: number) => {
      const onDue = () => (leftMs > maxDelayMs ? waitFor(leftMs - maxDelayMs) : action());
      timer = setTimeout(onDue, Math.min(leftMs, maxDelayMs)).unref();
    };
    waitFor(delayMs);
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
