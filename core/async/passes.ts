import type { Clock } from '../clock/clock.ts';

/** Runs `pass` periodically, one at a time. `pass` must not reject. Disposing waits for a pass in progress. */
export function startPasses(clock: Pick<Clock, 'every'>, everyMs: number, pass: () => Promise<void>): AsyncDisposable {
  let running: Promise<void> | undefined;
  const timer = clock.every(everyMs, () => {
    running ??= pass().finally(() => (running = undefined));
  });
  return {
    [Symbol.asyncDispose]: async () => {
      timer[Symbol.dispose]();
      await running;
    },
  };
}
