/** Runs the published `jamsocket` command line with its own home folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

export interface JamsocketPlace {
  readonly program: string;
  /** The program keeps its log-in here. */
  readonly home: string;
  readonly apiUrl: string;
  readonly dockerHost: string;
}

export class Jamsocket {
  readonly #place: JamsocketPlace;

  constructor(place: JamsocketPlace) {
    this.#place = place;
  }

  /** The environment of the program and of the programs that it starts. */
  get env(): NodeJS.ProcessEnv {
    const { home, apiUrl, dockerHost } = this.#place;
    return {
      PATH: process.env['PATH'],
      HOME: home,
      JAMSOCKET_SERVER_API: apiUrl,
      // Otherwise the program asks npm for its newest version, in the background.
      JAMSOCKET_SKIP_NEW_VERSION_CHECK: 'true',
      DOCKER_HOST: dockerHost,
      // The engines of tests have no buildx.
      DOCKER_BUILDKIT: '0',
    };
  }

  /** Runs a command in a folder, the home folder by default, and returns its output. Throws an error with it if the command fails. */
  async run(args: readonly string[], cwd?: string): Promise<string> {
    const running = this.start(args, cwd);
    running.type('');
    return await running.done;
  }

  /** Starts a command, to read its output while it runs. */
  start(args: readonly string[], cwd: string = this.#place.home): RunningCommand {
    return new RunningCommand(this.#place.program, args, { env: this.env, cwd });
  }
}

export class RunningCommand {
  /** The output of the command that has succeeded. */
  readonly done: Promise<string>;
  readonly #child;
  #output = '';

  constructor(program: string, args: readonly string[], options: { env: NodeJS.ProcessEnv; cwd: string }) {
    this.#child = spawn(program, args, { ...options, stdio: 'pipe' });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (this.#output += stripVTControlCharacters(chunk)));
    }
    this.done = once(this.#child, 'close').then(([code]) => {
      if (code === 0) return this.#output;
      throw new Error(`"jamsocket ${args.join(' ')}" exited with ${String(code)}: ${this.#output}`);
    });
    // The caller that awaits the promise receives the rejection.
    this.done.catch(() => {});
  }

  /** Waits until the output matches, and returns the first group. Throws if the command ends before. */
  async output(pattern: RegExp): Promise<string> {
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match) return match[1] ?? '';
      if (this.#child.exitCode !== null) throw new Error(`No ${String(pattern)} in: ${await this.done}`);
      await Promise.race([once(this.#child.stdout, 'data'), once(this.#child.stderr, 'data'), this.done]);
    }
  }

  /** Writes the whole standard input. */
  type(text: string): void {
    this.#child.stdin.end(text);
  }
}
