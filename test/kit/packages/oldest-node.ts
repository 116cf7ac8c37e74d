/** The oldest Node that the published command line supports, installed from npm into a cache folder. */
import { join } from 'node:path';
import type { Terminal } from '../../../setup/terminal.ts';
import { messageOf } from '../message-of.ts';
import { cachedPath, pathExists } from './cached.ts';
import { installedFromNpm } from './npm-packages.ts';

const version = '20.20.2';

const folder = `node-${version}`;

const packageName = `node-linux-${process.arch}`;

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
      await installedFromNpm(folder, npm, [`${packageName}@${version}`]);
    });
    return undefined;
  } catch (error) {
    return `it cannot be installed from npm: ${messageOf(error)}`;
  }
}
