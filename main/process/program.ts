/** What the programs `berth` and `npm start` share: stop signals, errors that the user can correct, and settings of Node.js. */
import { constants } from 'node:os';
import { ConfigError } from '../../core/config/settings.ts';
import { StoreError } from '../../core/store/store.ts';

/** Runs a program and returns its exit code. If it throws an error that the user can correct, prints only the message, and returns 1. */
export async function runProgram(program: () => Promise<number>): Promise<number> {
  try {
    return await program();
  } catch (error) {
    if (!isUserError(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}

/** Whether the user who started the process can correct the cause of an error. */
function isUserError(error: unknown): error is Error {
  if (error instanceof ConfigError) return true;
  if (error instanceof StoreError) return error.code === 'locked' || error.isFull;
  return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'ENOSPC');
}

/** The signals that stop the process. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Resolves at the first stop signal. A second signal ends the process at once, with its exit code. */
export async function stopSignal(): Promise<NodeJS.Signals> {
  return await new Promise((resolve) => {
    let isStopping = false;
    for (const signal of stopSignals) {
      process.on(signal, () => {
        if (isStopping) process.exit(signalExitCode(signal));
        isStopping = true;
        resolve(signal);
      });
    }
  });
}

/** The exit code of a process that a signal has ended. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/**
 * The number of threads with which libuv reads, writes and syncs files. Its default is four. A sync blocks a thread until the disk
 * is done, so with more than four pushes at once, reads would wait for the syncs of other requests. A waiting thread costs almost
 * nothing.
 */
const threads = 16;

/**
 * Sets the size of the thread pool of this process, unless the environment sets it. `environment` must be the environment of this
 * process. Call it first: it has no effect after the first file operation.
 */
export function sizeThreadPool(environment: NodeJS.ProcessEnv): void {
  environment['UV_THREADPOOL_SIZE'] ??= String(threads);
}
