/** A program whose output a test reads while it runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { untilOutput } from './until-output.ts';

export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command that runs a line of a shell in its own terminal. */
export function inTerminal(line: string): string[] {
  return ['script', '--quiet', '--return', '--flush', '--command', line, '/dev/null'];
}

/** A command as a part of a line for a shell. */
export function quoted(command: readonly string[]): string {
  return command.map((each) => `'${each.replaceAll("'", String.raw`'\''`)}'`).join(' ');
}

export class RunningProgram {
  readonly done: Promise<ProgramResult>;
  readonly #command: string;
  readonly #child;
  #stdout = '';
  #stderr = '';
  /** Both streams, in the order in which they were received. */
  #output = '';
  /** Resolves the promise that waits for output. */
  #onData: () => void = () => {};

  constructor(command: readonly string[], options: { env: NodeJS.ProcessEnv; cwd: string }) {
    const [program = '', ...args] = command;
    const child = spawn(program, args, { ...options, stdio: 'pipe' });
    this.#command = command.join(' ');
    this.#child = child;
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stdout += chunk;
      this.#onOutput(chunk);
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stderr += chunk;
      this.#onOutput(chunk);
    });
    // A command that fails early does not read its input.
    child.stdin.on('error', () => {});
    this.done = once(child, 'close').then(([code]) => ({
      code: code as number | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /** Waits until the output of both streams matches, and returns the first group. Throws if the program ends before. */
  async output(pattern: RegExp): Promise<string> {
    const match = await untilOutput(() => pattern.exec(this.#text()) ?? undefined, {
      onNext: (call) => (this.#onData = call),
      ended: this.done,
    });
    if (match) return match[1] ?? '';
    const { exitCode, signalCode } = this.#child;
    throw new Error(`Ended with ${exitCode ?? signalCode}, no ${String(pattern)} in: ${this.#text()}`);
  }

  /** Waits for the end, and returns the output of both streams. Throws with it if the program fails. */
  async succeeded(): Promise<string> {
    const { code } = await this.done;
    if (code === 0) return this.#text();
    throw new Error(`"${this.#command}" exited with ${code}: ${this.#text()}`);
  }

  /** Writes the whole standard input. */
  type(text: string | Buffer): void {
    this.#child.stdin.end(text);
  }

  /** Presses keys. */
  press(keys: string): void {
    this.#child.stdin.write(keys);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  #onOutput(chunk: string): void {
    this.#output += chunk;
    this.#onData();
  }

  #text(): string {
    return stripVTControlCharacters(this.#output);
  }
}
