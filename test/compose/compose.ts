/** Runs docker-compose on the docker-compose.yml of this checkout, as an operator does. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../setup/command.ts';
import { modernProgram } from '../kit/packages/client-packages.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The settings of `.env`, and other variables that docker-compose reads. */
export type ComposeSettings = Readonly<Record<string, string>>;

/** The program from the modern engine's packages, if they are unpacked. */
export async function composeProgram(): Promise<string | undefined> {
  return await modernProgram('bin/docker-compose');
}

/** Why `composeProgram` returns `undefined`, for reports. */
export const noCompose = 'npm test has not unpacked docker-compose';

export class Compose {
  readonly #program: string;
  readonly #files: readonly string[];
  readonly #settings: ComposeSettings;

  /** @param files - besides docker-compose.yml, relative to the checkout */
  constructor(program: string, settings: ComposeSettings, files: readonly string[] = []) {
    this.#program = program;
    this.#settings = settings;
    this.#files = ['docker-compose.yml', ...files].flatMap((name) => ['--file', join(root, name)]);
  }

  /** Runs a command. Throws `CommandError` with the output of docker-compose. Does not read the `.env` of the checkout. */
  async run(...args: string[]): Promise<string> {
    const options = ['--progress', 'plain', ...this.#files, '--env-file', '/dev/null', '--project-directory', root];
    return await runCommand(this.#program, [...options, ...args], { env: this.#settings });
  }

  /** Starts services and waits until they are healthy. Throws with their logs if they do not become so. */
  async up(...args: string[]): Promise<void> {
    try {
      await this.run('up', '--detach', '--no-build', '--wait', ...args);
    } catch (error) {
      const log = await this.run('logs', '--no-color', '--tail', '20').catch(() => '');
      const problem = error instanceof Error ? error.message : String(error);
      throw new Error(`The services did not become healthy: ${problem}\n${log}`, { cause: error });
    }
  }

  /** The file with all variables resolved. */
  async config(): Promise<unknown> {
    return JSON.parse(await this.run('config', '--format', 'json'));
  }
}
