/** Runs the published `jamsocket` command line with its own home folder. */
import { RunningProgram } from '../kit/machine/running-program.ts';
import { cachedPath } from '../kit/packages/cached.ts';

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
      // The program is large, and starts for each command.
      NODE_COMPILE_CACHE: cachedPath('compiled-jamsocket'),
      DOCKER_HOST: dockerHost,
      // The engines of tests have no buildx.
      DOCKER_BUILDKIT: '0',
    };
  }

  /** Runs a command in a folder, the home folder by default, and returns its output. Throws an error with it if the command fails. */
  async run(args: readonly string[], cwd?: string): Promise<string> {
    const running = this.start(args, cwd);
    running.type('');
    return await running.succeeded();
  }

  /** Starts a command, to read its output while it runs. */
  start(args: readonly string[], cwd: string = this.#place.home): RunningProgram {
    return new RunningProgram([this.#place.program, ...args], { env: this.env, cwd });
  }
}
