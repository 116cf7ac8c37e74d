/** A file system of a given type in a file, for tests that depend on the type. */
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, runCommand, tryCommand } from '../../../setup/command.ts';

export type FileSystemType = 'btrfs' | 'xfs';

/** The programs that make file systems, and their packages. */
export const fileSystemPrograms = { 'mkfs.btrfs': 'btrfs-progs', 'mkfs.xfs': 'xfsprogs' };

/** The smallest size that both programs accept by default. The file is sparse. */
const sizeBytes = 1024 * 1024 * 1024;

/** Why such a file system cannot be mounted here, or `undefined` if it can. */
export async function whyNoLoopDisk(type: FileSystemType): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root can mount a file system';
  if ((await findProgram(`mkfs.${type}`)) === undefined) return `mkfs.${type} is not installed`;
  const known = await readFile('/proc/filesystems', 'utf8');
  if (!known.split('\n').includes(`\t${type}`)) return `the kernel has no ${type}`;
  return (await tryCommand('losetup', ['--find'])).code === 0 ? undefined : 'there are no loop devices';
}

export class LoopDisk implements AsyncDisposable {
  /** Where it is mounted. */
  readonly path: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, 'mounted');
  }

  static async mount(type: FileSystemType): Promise<LoopDisk> {
    const folder = await mkdtemp(join(tmpdir(), 'berth-loop-disk-'));
    const disk = new LoopDisk(folder);
    const image = join(folder, 'image');
    {
      await using file = await open(image, 'w');
      await file.truncate(sizeBytes);
    }
    await runCommand(`mkfs.${type}`, ['-q', image]);
    await runCommand('mkdir', [disk.path]);
    await runCommand('mount', ['-t', type, '-o', 'loop', image, disk.path]);
    return disk;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await tryCommand('umount', ['--lazy', this.path]);
    await rm(this.#folder, { recursive: true, force: true });
  }
}
