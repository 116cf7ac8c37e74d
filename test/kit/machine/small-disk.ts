/** A file system of a few megabytes that tests can fill, if this process may mount one. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemCode } from '../../../core/files/system-code.ts';

const mebibyte = 1024 * 1024;

export class SmallDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Throws if `canMount` is false. */
  static async mount(sizeMib: number): Promise<SmallDisk> {
    const path = await mkdtemp(join(tmpdir(), 'berth-small-disk-'));
    const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMib}m,mode=700`, 'tmpfs', path]);
    if (status === 0) return new SmallDisk(path);
    await rm(path, { recursive: true });
    throw new Error('Only root can mount a small disk');
  }

  /** The free space. */
  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.path);
    return bavail * bsize;
  }

  /** Fills the disk with a file, and leaves this much space. */
  async fillUpTo(leftMib: number): Promise<void> {
    await this.heal();
    const sizeBytes = Math.max(0, (await this.freeBytes()) - leftMib * mebibyte);
    // Other programs may write meanwhile.
    await writeFile(this.#filler, Buffer.alloc(sizeBytes)).catch((error: unknown) => {
      if (systemCode(error) !== 'ENOSPC') throw error;
    });
  }

  /** Deletes the file of `fillUpTo`. */
  async heal(): Promise<void> {
    await rm(this.#filler, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Lazy, because a container that is being removed may still mount a folder of it.
    spawnSync('umount', ['--lazy', this.path]);
    await rm(this.path, { recursive: true, force: true });
  }

  get #filler(): string {
    return join(this.path, 'filler');
  }
}

/** Whether this process may mount file systems. */
export const canMount = await SmallDisk.mount(1).then(
  async (disk) => {
    await disk[Symbol.asyncDispose]();
    return true;
  },
  () => false,
);

/** A suffix for the names of tests that are skipped without a small disk. */
export const whyNoDisk = canMount ? '' : ' (skipped: only root can mount a small disk)';
