/** The published `jamsocket` command line, installed from npm into a cache folder. */
import { join } from 'node:path';
import type { Terminal } from '../../../setup/terminal.ts';
import { messageOf } from '../message-of.ts';
import { cachedPath, pathExists } from './cached.ts';
import { installedFromNpm } from './npm-packages.ts';

/** The last release, of 2024. */
const version = '0.10.7';

const folder = `jamsocket-${version}`;

/** The path of the program, if it is installed. */
export async function jamsocketProgram(): Promise<string | undefined> {
  const program = join(cachedPath(folder), 'node_modules/.bin/jamsocket');
  return (await pathExists(program)) ? program : undefined;
}

/** Installs the program with this npm. Returns why it cannot be used, or `undefined`. */
export async function installJamsocket(npm: string | undefined, terminal: Terminal): Promise<string | undefined> {
  if (await jamsocketProgram()) return undefined;
  if (npm === undefined) return 'npm is not installed';
  try {
    await terminal.withProgress('Installing the jamsocket command line', async () => {
      await installedFromNpm(folder, npm, [`jamsocket@${version}`]);
    });
    return undefined;
  } catch (error) {
    return `it cannot be installed from npm: ${messageOf(error)}`;
  }
}
