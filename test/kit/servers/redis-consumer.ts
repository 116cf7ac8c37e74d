/** A process that consumes jobs from a queue on Redis, and that a test can kill. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface ConsumerProcess extends AsyncDisposable {
  /** The lines that it printed: `ready`, `began <part>`, `ended <part>`, `closed`. */
  readonly lines: readonly string[];
  kill(signal: NodeJS.Signals): void;
  /** Resolves to its exit code, or to the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

export interface ConsumerProcessOptions {
  readonly url: string;
  readonly prefix: string;
  readonly queue: string;
  readonly concurrency: number;
  /** Whether its jobs run until they are aborted. */
  readonly runsUntilAborted?: boolean;
}

/** Starts a process that consumes one queue, and closes it on SIGTERM. */
export function startConsumerProcess(options: ConsumerProcessOptions): ConsumerProcess {
  const script = fileURLToPath(new URL('redis-consumer-child.ts', import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return {
    lines,
    kill: (signal) => void child.kill(signal),
    exited,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
