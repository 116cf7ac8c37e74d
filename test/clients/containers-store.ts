/**
 * What podman, buildah and skopeo share, which stand on one library: their words, and for the first two a store of images of
 * its own, which leaves the machine's alone.
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
 * Makes an empty store in a folder, and returns the environment that leads podman and buildah to it. Layers are copied by
 * `vfs`, which runs everywhere; only `overlay` takes layers in parts.
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
  // Neither a journal nor systemd need run here.
  const engine = ['[engine]', 'events_logger = "none"', 'cgroup_manager = "cgroupfs"', `tmp_dir = "${folder}/tmp"`];
  await writeFile(join(folder, 'storage.conf'), `${storage.join('\n')}\n`);
  await writeFile(join(folder, 'containers.conf'), `${engine.join('\n')}\n`);
  return {
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    TMPDIR: folder,
  };
}

/** Removes a store, and what its driver left mounted there. */
export async function removeStore(folder: string): Promise<void> {
  for (const driver of ['overlay', 'vfs']) await tryCommand('umount', ['--lazy', join(folder, 'images', driver)]);
  await rm(folder, { recursive: true, force: true });
}

/** How podman and buildah are told which certificates are good. */
export function trustFlags({ security }: Place, trust: boolean): string[] {
  if (security === 'plain') return ['--tls-verify=false'];
  return trust ? ['--cert-dir', security.authorityFolder] : [];
}
