/** Packages from npm in a cache folder. */
import { delimiter, dirname } from 'node:path';
import { runCommand } from '../../../setup/command.ts';
import { cached } from './cached.ts';

/** The largest have hundreds of dependencies, which take minutes on a busy machine. */
const installTimeoutMs = 600_000;

/** Returns the cached folder with this name, whose `node_modules` has these packages. Installs them with this npm if it is missing. */
export async function installedFromNpm(name: string, npm: string, packages: readonly string[]): Promise<string> {
  return await cached(name, async (making) => {
    const quiet = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts', '--loglevel=error'];
    // npm starts the first Node on the PATH, and the PATH of set-up may lack the Node that runs the tests.
    const PATH = [dirname(process.execPath), process.env['PATH']].join(delimiter);
    const signal = AbortSignal.timeout(installTimeoutMs);
    await runCommand(npm, ['install', `--prefix=${making}`, ...quiet, ...packages], {
      cwd: making,
      env: { PATH },
      signal,
    });
  });
}
