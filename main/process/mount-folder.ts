import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../../core/config/settings.ts';
import { ifPresent } from '../../core/files/system-code.ts';
import type { Log } from '../../core/log/log.ts';
import type { ComponentDeps } from '../drivers.ts';

/** Where the folders are that backends may mount; `undefined` where they may mount none. */
export function mountFolder({ config, dataFolder }: ComponentDeps): string | undefined {
  return config.mountFolder === 'off' ? undefined : (config.mountFolder ?? join(dataFolder, 'mounts'));
}

/** What users other than the owner may do with a folder. */
const othersMode = 0o077;

/**
 * Closes the folder of mounts to other users of this machine. Whatever runs in a container may write to its folder in there, a
 * program with the set-user-ID bit too, and a user of the machine who reaches that runs it as its owner, `root` for one. Throws
 * `ConfigError` if the folder is not this process's own. One that is missing is made closed when a backend needs it.
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
  log.warn({ folder }, 'Folder of mounts was open to other users of this machine, it is closed to them now');
}
