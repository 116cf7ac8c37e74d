import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../../core/config/settings.ts';
import { ifPresent } from '../../core/files/system-code.ts';
import type { Log } from '../../core/log/log.ts';
import type { ComponentDeps } from '../drivers.ts';

/** The folder with the folders that backends mount; `undefined` if mounts are disabled. */
export function mountFolder({ config, dataFolder }: ComponentDeps): string | undefined {
  return config.mountFolder === 'off' ? undefined : (config.mountFolder ?? join(dataFolder, 'mounts'));
}

/** The permission bits of users other than the owner. */
const othersMode = 0o077;

/**
 * Removes the access of other users of this machine to the mount folder. A container can write a program with the set-user-ID bit
 * to its mount, and a user of the machine who can reach that program would run it as its owner, for example as `root`. Throws
 * `ConfigError` if the folder belongs to another user. A missing folder is created with the right mode when a backend needs it.
 */
export async function guardMountFolder(folder: string, log: Log): Promise<void> {
  const found = await ifPresent(stat(folder));
  if (!found) return;
  const refuse = (problem: string) => new ConfigError(`BERTH_MOUNT_FOLDER (${folder}): ${problem}`);
  if (!found.isDirectory()) throw refuse('It is not a folder');
  const user = process.geteuid?.();
  if (found.uid !== user) {
    throw refuse(`It belongs to user ${found.uid} and the platform runs as ${user}, run "chown ${user} ${folder}"`);
  }
  if ((found.mode & othersMode) === 0) return;
  await chmod(folder, 0o700);
  log.warn({ folder }, 'Other users of this machine had access to the mount folder, their access was removed');
}
