/** The oldest Node that the published command line supports, installed from npm into a cache folder. */
import { join } from 'node:path';
import { runCommand } from '../../../setup/command.ts';
import type { Terminal } from '../../../setup/terminal.ts';
import { cached, cachedPath, pathExists } from './cached.ts';

const version = '20.20.2';

const folder = `node-${version}`;

const packageName = `node-linux-${process.arch}`;

const installTimeoutMs = 120_000;

/** The path of its program, if it is installed. */
export async function oldestNode(): Promise<string | undefined> {
  const program = join(cachedPath(folder), 'node_modules', packageName, 'bin/node');
  return (await pathExists(program)) ? program : undefined;
}

/** Installs it with this npm. Returns why it cannot be used, or `undefined`. */
export async function installOldestNode(npm: string | undefined, terminal: Terminal): Promise<string | undefined> {
  if (await oldestNode()) return undefined;
  if (npm === undefined) return 'npm is not installed';
  try {
    await terminal.withProgress(`Installing Node ${version}`, async () => {
      await cached(folder, async (making) => {
        const quiet = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts', '--loglevel=error'];
        const args = ['install', `--prefix=${making}`, ...quiet, `${packageName}@${version}`];
        await runCommand(npm, args, { cwd: making, signal: AbortSignal.timeout(installTimeoutMs) });
      });
    });
    return undefined;
  } catch (error) {
    return `it cannot be installed from npm: ${error instanceof Error ? error.message : String(error)}`;
  }
}
