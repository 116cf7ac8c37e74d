/** Signals during a test run: they stop the tests, and then this process stops its servers. */
import type { ChildProcess } from 'node:child_process';

export interface Interruption {
  signal: NodeJS.Signals | undefined;
  /** The process of vitest. */
  child: ChildProcess | undefined;
}

/** Forwards signals to the tests, and keeps this process running until it has stopped its servers. */
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
