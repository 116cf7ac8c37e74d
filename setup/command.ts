/** Runs other programs. Arguments are always a list, never a shell command. */
import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The standard input of the program. Default: empty. */
  readonly input?: Readable | string;
  /** Called with each line of standard output as it arrives. */
  readonly onLine?: (line: string) => void;
  /** Ends the program with SIGTERM. */
  readonly signal?: AbortSignal;
}

export interface CommandResult {
  /** 127 if there is no such program, as in a shell. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The error of a program that failed. The message ends with the program's output. */
class CommandError extends Error {
  override readonly name = 'CommandError';
}

const notFoundCode = 127;

/** Runs a program to its end and returns its output, whether it failed or not. */
export async function tryCommand(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const child = spawn(program, args, {
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    ...(options.signal && { signal: options.signal }),
  });
  const output = { stdout: '', stderr: '' };
  createInterface(child.stdout).on('line', (line) => {
    output.stdout += `${line}\n`;
    options.onLine?.(line);
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (output.stderr += chunk));
  const input = typeof options.input === 'string' ? Readable.from([options.input]) : options.input;
  // A program that exits without reading its input reports the reason itself, so the broken pipe is not an additional error.
  const feeding = pipeline(input ?? Readable.from([]), child.stdin).catch((error: unknown) => error);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve(notFoundCode);
      else reject(error);
    });
    child.once('close', (exitCode) => resolve(exitCode ?? 1));
  });
  const failedInput = await feeding;
  if (code === 0 && failedInput instanceof Error) throw failedInput;
  if (code === notFoundCode) output.stderr ||= `There is no program "${program}" here`;
  return { code, ...output };
}

/** Runs a program and returns its standard output. Throws `CommandError` if it fails. */
export async function runCommand(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const { code, stdout, stderr } = await tryCommand(program, args, options);
  if (code === 0) return stdout;
  const lastLines = (stderr.trim() || stdout.trim()).split('\n').slice(-20).join('\n');
  throw new CommandError(`"${program} ${args[0] ?? ''}" exited with ${code}: ${lastLines}`);
}

/** The path of a program in PATH or in Debian's folders for administration programs, `undefined` if it is in neither. */
export async function findProgram(name: string): Promise<string | undefined> {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  for (const folder of folders) {
    const path = join(folder, name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}
