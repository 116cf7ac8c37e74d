/**
 * Runs the bundle of the action as GitHub's runner does: inputs, defaults of `action.yml`, command files, masks and the post step.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';

const actionFolder = join(import.meta.dirname, '../../action');

interface ActionFile {
  readonly inputs: Readonly<Record<string, { description: string; required?: boolean; default?: string }>>;
  readonly outputs: Readonly<Record<string, { description: string }>>;
  readonly runs: { readonly using: string; readonly main: string; readonly post: string };
}

export const action = parse(await readFile(join(actionFolder, 'action.yml'), 'utf8')) as ActionFile;

export type With = Readonly<Record<string, string | boolean>>;

type Variables = Readonly<Record<string, string | undefined>>;

/** A command of the log that the runner would execute. */
interface Command {
  readonly name: string;
  readonly properties: string;
  readonly data: string;
}

export interface StepResult {
  readonly code: number | null;
  /** The whole output of the process. */
  readonly raw: string;
  /** The log on the page of the run: without commands, and with masked secrets. */
  readonly log: string;
  readonly commands: readonly Command[];
  readonly outputs: Variables;
  readonly state: Variables;
  readonly summary: string;
  /** The variables and paths that the step has set for later steps. */
  readonly environment: string;
}

/** A signal that ends a step when its log and state match. */
export interface StepSignal {
  readonly name: NodeJS.Signals;
  readonly when: RegExp;
}

/** A job with its own home folder, temporary folder and workspace. */
export class Job {
  readonly workspace: string;
  readonly temp: string;
  readonly home: string;
  readonly #folder: string;
  readonly #env: Variables;

  private constructor(folder: string, env: Variables) {
    this.#folder = folder;
    this.workspace = join(folder, 'workspace');
    this.temp = join(folder, 'temp');
    this.home = join(folder, 'home');
    this.#env = env;
  }

  static async in(parent: string, env: Variables): Promise<Job> {
    const job = new Job(await mkdtemp(join(parent, 'job-')), env);
    for (const folder of [job.workspace, job.temp, job.home]) await mkdir(folder);
    return job;
  }

  /** Runs the step, and interprets its output as the runner does. */
  async main(inputs: With, env: Variables = {}, signal?: StepSignal): Promise<StepResult> {
    return await this.#run(action.runs.main, { ...inputVariables(inputs), ...env }, signal);
  }

  /** Runs the post step, with the state that the step has saved. */
  async post(inputs: With, state: Variables, env: Variables = {}): Promise<StepResult> {
    const kept = Object.fromEntries(Object.entries(state).map(([name, value]) => [`STATE_${name}`, value]));
    return await this.#run(action.runs.post, { ...inputVariables(inputs), ...kept, ...env });
  }

  async #run(program: string, env: Variables, signal?: StepSignal): Promise<StepResult> {
    const files = await mkdtemp(join(this.#folder, 'commands-'));
    const at = (name: string) => join(files, name);
    const names = ['output', 'state', 'summary', 'env', 'path'];
    for (const name of names) await writeFile(at(name), '');
    const child = spawn(process.execPath, [join(actionFolder, program)], {
      cwd: this.workspace,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: this.home,
        CI: 'true',
        RUNNER_TEMP: this.temp,
        GITHUB_OUTPUT: at('output'),
        GITHUB_STATE: at('state'),
        GITHUB_STEP_SUMMARY: at('summary'),
        GITHUB_ENV: at('env'),
        GITHUB_PATH: at('path'),
        ...this.#env,
        ...env,
      },
    });
    if (signal) sendWhen(child, at('state'), signal);
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    const raw = `${stdout}${stderr}`;
    return {
      code: code as number | null,
      raw,
      ...interpret(raw),
      outputs: entries(await readFile(at('output'), 'utf8')),
      state: entries(await readFile(at('state'), 'utf8')),
      summary: await readFile(at('summary'), 'utf8'),
      environment: `${await readFile(at('env'), 'utf8')}${await readFile(at('path'), 'utf8')}`,
    };
  }
}

function sendWhen(child: ChildProcess, stateFile: string, { name, when }: StepSignal): void {
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (!child.killed && when.test(output + readFileSync(stateFile, 'utf8'))) child.kill(name);
  });
}

/** The variables of inputs, as `using: node24` receives them: names in upper case, hyphens kept, defaults applied. */
function inputVariables(inputs: With): Variables {
  const unknown = Object.keys(inputs).find((name) => !(name in action.inputs));
  if (unknown !== undefined) throw new Error(`action.yml has no input "${unknown}"`);
  return Object.fromEntries(
    Object.entries(action.inputs).map(([name, { default: fallback }]) => {
      const value = inputs[name] ?? fallback ?? '';
      return [`INPUT_${name.replaceAll(' ', '_').toUpperCase()}`, String(value)];
    }),
  );
}

/** Reads the log line by line, as the runner does: commands are executed unless `stop-commands` disables them. */
function interpret(raw: string): Pick<StepResult, 'log' | 'commands'> {
  const commands: Command[] = [];
  const secrets: string[] = [];
  const shown: string[] = [];
  let stopToken: string | undefined;
  for (const line of raw.split(/\r\n|\r|\n/)) {
    const match = /^\s*::([\w-]+)(?: ([^]*?))?::([^]*)$/.exec(line);
    if (stopToken !== undefined && match?.[1] === stopToken) stopToken = undefined;
    else if (stopToken === undefined && match) {
      const [, name = '', properties = '', data = ''] = match;
      const value = data.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%');
      commands.push({ name, properties, data: value });
      if (name === 'add-mask') secrets.push(value);
      if (name === 'stop-commands') stopToken = value;
      if (['error', 'warning', 'notice'].includes(name)) shown.push(masked(value, secrets));
    } else shown.push(masked(line, secrets));
  }
  return { commands, log: shown.join('\n') };
}

function masked(line: string, secrets: readonly string[]): string {
  return secrets.reduce((text, secret) => text.replaceAll(secret, '***'), line);
}

/** The entries of a file of commands: `name=value`, or `name<<end` with lines up to the end. */
function entries(file: string): Variables {
  const found: Record<string, string> = {};
  const lines = file.split('\n');
  while (lines.length > 0) {
    const line = lines.shift() ?? '';
    const [, name = '', end] = /^([^=<]+)<<(.+)$/.exec(line) ?? [];
    if (end !== undefined) {
      const value: string[] = [];
      while (lines.length > 0 && lines[0] !== end) value.push(lines.shift() ?? '');
      if (lines.shift() !== end) throw new Error(`No end of ${name}`);
      found[name] = value.join('\n');
    } else if (line.includes('=')) found[line.slice(0, line.indexOf('='))] = line.slice(line.indexOf('=') + 1);
    else if (line !== '') throw new Error(`Not an entry: ${line}`);
  }
  return found;
}
