/**
 * The folder for the data of a test run: in memory if there is enough, because tests sync thousands of times, which disks do
 * slowly.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, statfs } from 'node:fs/promises';
import { availableParallelism, freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { diskFolderVariable } from '../kit/machine/disk-folder.ts';

const memoryFolder = '/dev/shm';

/** A whole run stores about 3 GiB on two cores: engines with their images, MongoDB, and the platforms that run at a time. */
const minBytesPerCore = 4 * 1024 ** 3;

/** A folder that is removed when it is disposed. */
export interface ScratchFolder extends AsyncDisposable {
  readonly path: string;
}

/**
 * Creates a folder for a run, and makes it the folder of temporary files of this process and its child processes. If `TMPDIR` is set,
 * the folder is created there.
 */
export async function openScratchFolder(): Promise<ScratchFolder> {
  const before = { TMPDIR: process.env['TMPDIR'], [diskFolderVariable]: process.env[diskFolderVariable] };
  const chosen = before.TMPDIR;
  const parent = chosen || ((await hasMemory()) ? memoryFolder : tmpdir());
  // Short and without capital letters: podman allows 50 characters for a folder, and rejects a path with capitals.
  const path = join(parent, `berth-${randomBytes(3).toString('hex')}`);
  await mkdir(path, { mode: 0o700 });
  process.env[diskFolderVariable] = tmpdir();
  process.env['TMPDIR'] = path;
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      await rm(path, { recursive: true, force: true });
    },
  };
}

/** Whether there is a file system in memory that allows programs, with the space and memory that a run needs. */
async function hasMemory(): Promise<boolean> {
  const needed = availableParallelism() * minBytesPerCore;
  try {
    const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n').map((line) => line.split(' '));
    const mount = mounts.findLast(([, folder]) => folder === memoryFolder);
    if (mount?.[2] !== 'tmpfs' || mount[3]?.split(',').includes('noexec')) return false;
    const { bavail, bsize } = await statfs(memoryFolder);
    return bavail * bsize >= needed && freemem() >= needed;
  } catch {
    return false;
  }
}
