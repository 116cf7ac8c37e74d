/**
 * nginx and haproxy, to which the proxy is compared; wrk, which measures it; pebble and lego, which issue certificates. They are
 * unpacked from the packages of this system's release into a cache folder, because an installation would start them as services,
 * nginx on port 80 of all addresses.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, runCommand } from '../../../setup/command.ts';
import { messageOf } from '../message-of.ts';
import { cached, cachedPath, pathExists } from './cached.ts';

export type ProxyProgram = 'nginx' | 'haproxy' | 'wrk' | 'pebble' | 'lego';

/** A program, and the environment in which it finds its libraries. */
export interface Runnable {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Returns the program, or why it is missing. Unpacks it if needed. */
export async function proxyProgram(name: ProxyProgram): Promise<Runnable | { readonly missing: string }> {
  const installed = await findProgram(name);
  if (installed !== undefined) return { path: installed, env: {} };
  if ((await findProgram('apt-get')) === undefined) return { missing: `there is no ${name}, and no apt-get` };
  try {
    return await unpacked(name);
  } catch (error) {
    return { missing: `${name} cannot be unpacked: ${messageOf(error)}` };
  }
}

async function unpacked(name: ProxyProgram): Promise<Runnable> {
  const folder = await cached(`proxy-${name}`, async (making) => await unpack(name, making));
  const paths = [join(folder, 'usr/sbin', name), join(folder, 'usr/bin', name)];
  const [path] = (await Promise.all(paths.map(async (each) => ((await pathExists(each)) ? [each] : [])))).flat();
  if (path === undefined) throw new Error('its package lacks the program');
  const libraries = join(cachedPath(`proxy-${name}`), 'usr/lib');
  const triplets = await readdir(libraries).catch(() => []);
  if (triplets.length === 0) return { path, env: {} };
  return { path, env: { LD_LIBRARY_PATH: triplets.map((triplet) => join(libraries, triplet)).join(':') } };
}

/** Downloads and unpacks a package, and its dependencies that are not installed. Does not change the system. */
async function unpack(name: string, folder: string): Promise<void> {
  const downloads = await mkdtemp(join(tmpdir(), 'berth-apt-'));
  try {
    const names = await namesToDownload(name).catch(async () => {
      // A fresh machine has no package lists.
      await runCommand('apt-get', ['-q', 'update']);
      return await namesToDownload(name);
    });
    await runCommand('apt-get', ['-q', '-o', 'APT::Sandbox::User=root', 'download', ...names], { cwd: downloads });
    for (const each of await readdir(downloads)) await runCommand('dpkg', ['-x', join(downloads, each), folder]);
  } finally {
    await rm(downloads, { recursive: true });
  }
}

async function namesToDownload(name: string): Promise<string[]> {
  const options = ['--print-uris', '--yes', '--no-install-recommends', '--reinstall'];
  const output = await runCommand('apt-get', ['-q', ...options, 'install', name]);
  return output.split('\n').flatMap((line) => /^'[^']+' ([a-z0-9.+-]+)_/.exec(line)?.[1] ?? []);
}
