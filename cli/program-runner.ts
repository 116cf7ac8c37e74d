/** Runs other programs, never through a shell. */
import { spawn } from 'node:child_process';
import type { SpawnOptions } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { CliError, exitCodes } from './errors.ts';
import type { Environment } from './config/file.ts';

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env: Environment;
  /** Ends the program with SIGTERM. */
  readonly signal: AbortSignal;
}

export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end and returns its output. Throws `ProgramMissing` if the program does not exist. */
export async function runProgram(
  name: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramResult> {
  const child = started(name, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    exitOf(name, child, options),
  ]);
  return { code, stdout, stderr };
}

/** Runs a program with its output on our standard error, so that it can draw progress. Its standard input is `input`, by default empty. */
export async function showProgram(
  name: string,
  args: readonly string[],
  { input, ...options }: ProgramOptions & { readonly input?: Readable },
): Promise<number> {
  const child = started(name, args, { ...options, stdio: [input ? 'pipe' : 'ignore', 2, 2] });
  // A program that exits without reading its input reports the reason itself. An input that fails is our error.
  const feeding = input && child.stdin ? pipeline(input, child.stdin) : undefined;
  feeding?.catch(() => {});
  const code = await exitOf(name, child, options);
  if (code === 0) await feeding;
  return code;
}

/** Runs a program in place of this one, with our standard streams. Returns its exit code. */
export async function inheritProgram(name: string, args: readonly string[], options: ProgramOptions): Promise<number> {
  return await exitOf(name, started(name, args, { ...options, stdio: 'inherit' }), { ...options, replacesUs: true });
}

function started(
  name: string,
  args: readonly string[],
  { cwd, env, signal, stdio }: ProgramOptions & Pick<SpawnOptions, 'stdio'>,
) {
  signal.throwIfAborted();
  return spawn(name, args, { env, stdio, ...(cwd !== undefined && { cwd }) });
}

interface ExitOptions extends ProgramOptions {
  /** Whether it runs in our place: it has our terminal, and its exit code is ours, also after a signal. */
  readonly replacesUs?: boolean;
}

async function exitOf(
  name: string,
  child: ReturnType<typeof spawn>,
  { cwd, signal, replacesUs = false }: ExitOptions,
): Promise<number> {
  const end = () => {
    // At a terminal, Ctrl-C signals both processes, and a second signal would end the program at once.
    if (!(replacesUs && process.stdin.isTTY && isInterruption(signal.reason))) child.kill('SIGTERM');
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('close', (exitCode) => resolve(exitCode ?? 1));
      child.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ENOENT' ? missing(name, cwd) : error),
      );
    });
    if (!replacesUs) signal.throwIfAborted();
    return code;
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** The system reports a missing program and a missing folder with the same code. */
function missing(program: string, cwd: string | undefined): CliError {
  if (cwd !== undefined && !existsSync(cwd)) return new CliError('NoFolder', `There is no folder ${cwd}`);
  return new CliError('ProgramMissing', `There is no program "${program}" here`);
}

function isInterruption(reason: unknown): boolean {
  return reason instanceof CliError && reason.exitCode === exitCodes.interrupted;
}
