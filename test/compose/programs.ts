/** Layers with programs of this machine and their libraries, for images without a base system. */
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runCommand, tryCommand } from '../../setup/command.ts';
import type { LayerEntry } from '../../setup/image.ts';
import { staticBusybox } from '../kit/packages/docker-packages.ts';

/** The libraries and loader of programs, as ldd prints them. */
export async function librariesOf(files: readonly string[]): Promise<LayerEntry[]> {
  const { stdout } = await tryCommand('ldd', files, { env: { LC_ALL: 'C' } });
  const found = stdout.split('\n').flatMap((line) => /(?:^|\s)(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  return [...new Set(found)].map((path) => ({ path, file: path, mode: 0o755 }));
}

/** A program at a path in the image, with its libraries. */
export async function program(file: string, path = file): Promise<LayerEntry[]> {
  return [{ path, file, mode: 0o755 }, ...(await librariesOf([file]))];
}

/** Every file below a folder. */
export async function folder(from: string, to: string): Promise<LayerEntry[]> {
  const found = await readdir(from, { withFileTypes: true, recursive: true });
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ path: join(to, file.slice(from.length)), file }));
}

/** A shell, the tools of shell scripts, and the files that programs read to look up names. */
export async function smallSystem(users: readonly string[]): Promise<LayerEntry[]> {
  const busybox = await staticBusybox();
  if (busybox === undefined) throw new Error('Install busybox-static: the stand-in images contain it');
  const applets = (await runCommand(busybox, ['--list'])).trim().split('\n');
  const lines = ['root:x:0:0:root:/root:/bin/sh', ...users];
  const groups = lines.map((line) => `${line.split(':')[0]}:x:${line.split(':')[3]}:`);
  return [
    ...applets.map((name) => ({ path: `/bin/${name}`, link: 'busybox' })),
    // After the links, because the list of applets contains busybox itself.
    { path: '/bin/busybox', file: busybox, mode: 0o755 },
    { path: '/usr/bin/env', link: '/bin/busybox' },
    { path: '/etc/passwd', text: `${lines.join('\n')}\n` },
    { path: '/etc/group', text: `${groups.join('\n')}\n` },
    { path: '/etc/nsswitch.conf', text: 'hosts: files dns\n' },
    { path: '/tmp', folder: true, mode: 0o1777 },
  ];
}

/** The variable with which the loader finds libraries at their paths on this machine. */
export function libraryPath(entries: readonly LayerEntry[]): string {
  const folders = entries.filter(({ path }) => /\.so(?:\.|$)/.test(path)).map(({ path }) => dirname(path));
  return `LD_LIBRARY_PATH=${[...new Set(folders)].join(':')}`;
}
