/** The command line as it is published: one file, run as a process with its own home folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { runCommand } from '../../setup/command.ts';
import { oldestNode } from '../kit/packages/oldest-node.ts';

const builder = join(import.meta.dirname, '../../cli/build.ts');

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** Bundles the command line into a folder. Returns the path of the file. */
export async function bundled(folder: string): Promise<string> {
  await runCommand(process.execPath, [builder, folder]);
  return join(folder, 'berth.mjs');
}

/** The bundle with one home folder, on the oldest supported Node, if the tests have it. */
export class Cli {
  readonly program: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly node: string;

  private constructor(from: Pick<Cli, 'program' | 'home' | 'env' | 'node'>) {
    this.program = from.program;
    this.home = from.home;
    this.env = from.env;
    this.node = from.node;
  }

  static async at(program: string, home: string, env: Readonly<Record<string, string | undefined>> = {}): Promise<Cli> {
    await mkdir(home, { recursive: true });
    return new Cli({ program, home, env, node: (await oldestNode()) ?? process.execPath });
  }

  /** The file with the log-ins. */
  get configPath(): string {
    return join(this.home, '.config/berth/config.json');
  }

  /** Runs a command to its end. */
  async run(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
    const running = this.start(args, options);
    running.type(options.input ?? '');
    return await running.done;
  }

  /** Runs a command that succeeds, and returns its parsed output with `--json`. */
  async json<T = unknown>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.ok(...args, '--json')) as T;
  }

  /** Runs a command that succeeds, and returns its standard output. */
  async ok(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args);
    if (code !== 0) throw new Error(`berth ${args.join(' ')} exited with ${code}: ${stderr}`);
    return stdout;
  }

  /** Starts a command, to read its output while it runs. */
  start(args: readonly string[], { env, cwd = this.home }: CliOptions = {}): RunningCli {
    return new RunningCli([this.node, this.program, ...args], { env: this.#environment(env), cwd });
  }

  /** Starts a command in its own terminal. */
  inTerminal(args: readonly string[], { env, cwd = this.home }: CliOptions = {}): RunningCli {
    const command = [this.node, this.program, ...args]
      .map((each) => `'${each.replaceAll("'", String.raw`'\''`)}'`)
      .join(' ');
    const more = { TERM: 'xterm', SHELL: '/bin/sh', ...env };
    return new RunningCli(['script', '--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
      env: this.#environment(more),
      cwd,
    });
  }

  #environment(more: CliOptions['env']): NodeJS.ProcessEnv {
    return { PATH: process.env['PATH'], HOME: this.home, ...this.env, ...more };
  }
}

export class RunningCli {
  readonly done: Promise<CliResult>;
  readonly #child;
  #stdout = '';
  #stderr = '';
  /** Resolves the promise that waits for output. */
  #onData: () => void = () => {};

  constructor([program = '', ...args]: readonly string[], options: { env: NodeJS.ProcessEnv; cwd: string }) {
    const child = spawn(program, args, { ...options, stdio: 'pipe' });
    this.#child = child;
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stdout += chunk;
      this.#onData();
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stderr += chunk;
      this.#onData();
    });
    // A command that fails early does not read its input.
    child.stdin.on('error', () => {});
    this.done = once(child, 'close').then(([code]) => ({
      code: code as number | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /** Waits until the output of both streams matches, and returns the first group. */
  async output(pattern: RegExp): Promise<string> {
    for (;;) {
      const text = stripVTControlCharacters(this.#stdout + this.#stderr);
      const match = pattern.exec(text);
      if (match) return match[1] ?? '';
      if (this.#child.exitCode !== null)
        throw new Error(`Exited with ${this.#child.exitCode}, no ${String(pattern)} in: ${text}`);
      await Promise.race([new Promise<void>((resolve) => (this.#onData = resolve)), this.done]);
    }
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
}
