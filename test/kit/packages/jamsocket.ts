/** The published `jamsocket` command line, installed from npm into a cache folder. */
import { dirname, delimiter, join } from 'node:path';
import { runCommand } from '../../../setup/command.ts';
import type { Terminal } from '../../../setup/terminal.ts';
import { cached, cachedPath, pathExists } from './cached.ts';

/** The last release, of 2024. */
const version = '0.10.7';

const folder = `jamsocket-${version}`;

/** It has about 145 dependencies, which take half a minute. */
const installTimeoutMs = 180_000;

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
      await cached(folder, async (making) => {
        const quiet = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts', '--loglevel=error'];
        const args = ['install', `--prefix=${making}`, ...quiet, `jamsocket@${version}`];
        // npm starts the first Node on the PATH, and the PATH of set-up may lack the Node that runs the tests.
        const PATH = [dirname(process.execPath), process.env['PATH']].join(delimiter);
        await runCommand(npm, args, { cwd: making, env: { PATH }, signal: AbortSignal.timeout(installTimeoutMs) });
      });
    });
    return undefined;
  } catch (error) {
    return `it cannot be installed from npm: ${error instanceof Error ? error.message : String(error)}`;
  }
}
