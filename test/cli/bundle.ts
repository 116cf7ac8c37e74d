/** The command line as it is published: one file, run as a process with its own home folder. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../setup/command.ts';
import { inTerminal, quoted, RunningProgram } from '../kit/machine/running-program.ts';
import type { ProgramResult } from '../kit/machine/running-program.ts';
import { oldestNode } from '../kit/packages/oldest-node.ts';

const builder = join(import.meta.dirname, '../../cli/build.ts');

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
  async run(args: readonly string[], options: CliOptions = {}): Promise<ProgramResult> {
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
  start(args: readonly string[], { env, cwd = this.home }: CliOptions = {}): RunningProgram {
    return new RunningProgram([this.node, this.program, ...args], { env: this.#environment(env), cwd });
  }

  /** Starts a command in its own terminal. */
  inTerminal(args: readonly string[], { env, cwd = this.home }: CliOptions = {}): RunningProgram {
    const command = quoted([this.node, this.program, ...args]);
    const more = { TERM: 'xterm', SHELL: '/bin/sh', ...env };
    return new RunningProgram(inTerminal(command), { env: this.#environment(more), cwd });
  }

  #environment(more: CliOptions['env']): NodeJS.ProcessEnv {
    return { PATH: process.env['PATH'], HOME: this.home, ...this.env, ...more };
  }
}
