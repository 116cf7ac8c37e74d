/** Runs the current docker-compose on docker-compose.yml of this checkout, as an operator does. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../setup/command.ts';
import { modernProgram } from '../kit/packages/client-packages.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Settings as they stand in `.env`, and what else docker-compose reads from the environment. */
export type ComposeSettings = Readonly<Record<string, string>>;

/** The program of the modern engine's packages, if they are there. */
export async function composeProgram(): Promise<string | undefined> {
  return await modernProgram('bin/docker-compose');
}

/** Why `composeProgram` finds none, in the words of a report. */
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

  /** Throws `CommandError` with what docker-compose said. The person's own `.env` stays out of it. */
  async run(...args: string[]): Promise<string> {
    const options = ['--progress', 'plain', ...this.#files, '--env-file', '/dev/null', '--project-directory', root];
    return await runCommand(this.#program, [...options, ...args], { env: this.#settings });
  }

  /** The file with everything filled in. */
  async config(): Promise<unknown> {
    return JSON.parse(await this.run('config', '--format', 'json'));
  }
}
