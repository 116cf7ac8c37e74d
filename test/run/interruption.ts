/** Signals during a run of tests: they end the tests, and then this process stops what it has started. */
import type { ChildProcess } from 'node:child_process';

export interface Interruption {
  signal: NodeJS.Signals | undefined;
  /** The vitest that runs now. */
  child: ChildProcess | undefined;
}

/** Hands signals on to the tests, and lets this process live until it has stopped its servers. */
export function onSignal(): Interruption {
  const interrupted: Interruption = { signal: undefined, child: undefined };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      interrupted.signal = signal;
      interrupted.child?.kill(signal);
    });
  }
  return interrupted;
}
