/** Where a test run keeps its data: in memory where there is enough, because tests sync thousands of times, and disks are slow at it. */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, statfs } from 'node:fs/promises';
import { availableParallelism, freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { diskFolderVariable } from '../kit/machine/disk-folder.ts';

const memoryFolder = '/dev/shm';

/** A whole run keeps about 3 GiB on two cores: engines with their images, MongoDB, and the platforms that run at a time. */
const minBytesPerCore = 4 * 1024 ** 3;

/** A folder that is removed when it is disposed. */
export interface ScratchFolder extends AsyncDisposable {
  readonly path: string;
}

/**
 * Creates a folder for a run, and makes it the folder of temporary files of this process and of those that it starts. A `TMPDIR` in
 * the environment names another place for it.
 */
export async function openScratchFolder(): Promise<ScratchFolder> {
  const before = { TMPDIR: process.env['TMPDIR'], [diskFolderVariable]: process.env[diskFolderVariable] };
  const chosen = before.TMPDIR;
  const parent = chosen || ((await hasMemory()) ? memoryFolder : tmpdir());
  // Short and without capital letters: podman allows 50 characters for a folder, and takes a path with capitals for no path.
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

/** Whether there is a file system in memory that programs can be run from, with as much space and memory as a run needs. */
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
