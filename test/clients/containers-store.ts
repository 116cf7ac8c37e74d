/**
 * Shared by podman, buildah and skopeo, which use one library: error messages and, for the first two, an image store apart
 * from the machine's.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tryCommand } from '../../setup/command.ts';
import type { Place, Words } from './client.ts';

export const containersWords: Words = {
  wrongPassword: /invalid username\/password/,
  noLogin: /unauthorized|authentication required/i,
  noRight: /denied/i,
  absent: /manifest unknown|name unknown/,
  untrusted: /certificate signed by unknown authority/,
};

/**
 * Creates an empty store in a folder, and returns the environment that makes podman and buildah use it. `vfs`, which works on
 * every file system, copies layers; only `overlay` accepts layers in parts.
 */
export async function makeStore(
  folder: string,
  driver: 'vfs' | 'overlay' = 'vfs',
): Promise<Readonly<Record<string, string>>> {
  await mkdir(folder, { recursive: true });
  const storage = [
    '[storage]',
    `driver = "${driver}"`,
    `graphroot = "${folder}/images"`,
    `runroot = "${folder}/run"`,
    ...(driver === 'overlay' ? ['[storage.options]', 'pull_options = {enable_partial_images = "true"}'] : []),
  ];
  // Needs neither a journal nor systemd.
  const engine = ['[engine]', 'events_logger = "none"', 'cgroup_manager = "cgroupfs"', `tmp_dir = "${folder}/tmp"`];
  await writeFile(join(folder, 'storage.conf'), `${storage.join('\n')}\n`);
  await writeFile(join(folder, 'containers.conf'), `${engine.join('\n')}\n`);
  return {
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    TMPDIR: folder,
  };
}

/** Removes a store, and the mounts that its driver left there. */
export async function removeStore(folder: string): Promise<void> {
  for (const driver of ['overlay', 'vfs']) await tryCommand('umount', ['--lazy', join(folder, 'images', driver)]);
  await rm(folder, { recursive: true, force: true });
}

/** The flags that make podman and buildah trust the registry. */
export function trustFlags({ security }: Place, trust: boolean): string[] {
  if (security === 'plain') return ['--tls-verify=false'];
  return trust ? ['--cert-dir', security.authorityFolder] : [];
}
