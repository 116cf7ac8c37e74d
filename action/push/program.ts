/** Runs other programs, never through a shell. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { Failure } from '../failure.ts';
import type { Environment } from '../workflow/workflow.ts';

export interface ProgramOptions {
  readonly env: Environment;
  /** Ends the program with SIGTERM. */
  readonly signal: AbortSignal;
}

/** Runs a program to its end, and returns its output. */
export async function runProgram(
  name: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = started(name, args, options, 'pipe');
  const [stdout, stderr, code] = await Promise.all([text(child.stdout!), text(child.stderr!), exitOf(name, child)]);
  options.signal.throwIfAborted();
  return { code, stdout, stderr };
}

/** Runs a program whose output goes to the log. Returns its exit code. */
export async function showProgram(name: string, args: readonly string[], options: ProgramOptions): Promise<number> {
  const code = await exitOf(name, started(name, args, options, 1));
  options.signal.throwIfAborted();
  return code;
}

// oxlint-disable-next-line max-params -- what to run, and where its output goes
function started(name: string, args: readonly string[], { env, signal }: ProgramOptions, output: 'pipe' | 1) {
  signal.throwIfAborted();
  const child = spawn(name, args, { env, stdio: ['ignore', output, output] });
  const end = () => void child.kill('SIGTERM');
  signal.addEventListener('abort', end, { once: true });
  child.once('close', () => signal.removeEventListener('abort', end));
  return child;
}

async function exitOf(name: string, child: ReturnType<typeof spawn>): Promise<number> {
  return await new Promise<number>((resolve, reject) => {
    child.once('close', (code) => resolve(code ?? 1));
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ENOENT' ? new Failure(`There is no program "${name}" on this runner`) : error),
    );
  });
}
