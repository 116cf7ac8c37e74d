import { constants } from 'node:os';

/** The signals that stop the process. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Resolves at the first stop signal. A second one ends the process at once, with the exit code of that signal. */
export async function stopSignal(): Promise<NodeJS.Signals> {
  return await new Promise((resolve) => {
    let asked = false;
    for (const signal of stopSignals) {
      process.on(signal, () => {
        if (asked) process.exit(128 + constants.signals[signal]);
        asked = true;
        resolve(signal);
      });
    }
  });
}
