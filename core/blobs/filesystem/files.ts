/** Operations on the files of blobs and uploads. */
import { open, opendir, stat, unlink } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { ifPresent } from '../../files/system-code.ts';
import type { Log } from '../../log/log.ts';
import { unknownUpload } from '../blobs.ts';
import type { ByteRange } from '../blobs.ts';
import { FlushError, fileErrors } from './errors.ts';

/** The size of one read: enough to read a layer at the disk's speed. */
const readBytes = 1024 * 1024;

/**
 * Removes an upload whose bytes could not be made durable: the kernel may have dropped them, and would report success for a
 * second sync (https://wiki.postgresql.org/wiki/Fsync_Errors).
 */
export async function orDiscard(path: string, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (error instanceof FlushError) await remove(path);
    throw error;
  }
}

/** A file keeps its inode number and modification time when it becomes a blob, and is not written to after that. */
export function generationOf({ ino, mtimeMs }: Stats): string {
  return `${ino}-${mtimeMs}`;
}

export async function readFile(path: string, range?: ByteRange): Promise<Readable | undefined> {
  const file = await fileErrors(() => ifPresent(open(path, 'r')));
  return file?.createReadStream({ highWaterMark: readBytes, ...range });
}

export async function openUpload(path: string, uploadId: string): Promise<FileHandle> {
  const file = await fileErrors(() => ifPresent(open(path, 'r+')));
  if (!file) throw unknownUpload(uploadId);
  return file;
}

export async function remove(path: string): Promise<boolean> {
  return await fileErrors(async () => (await ifPresent(unlink(path).then(() => true))) ?? false);
}

/** A power cut during a rename can leave a blob under its old name too, where an append would change it. */
export async function removePublished(uploadsFolder: string, log: Log): Promise<void> {
  for await (const { name } of await opendir(uploadsFolder)) {
    const path = join(uploadsFolder, name);
    const found = await stat(path);
    if (!found.isFile() || found.nlink < 2) continue;
    await unlink(path);
    log.info({ upload: name }, 'Removed an upload that was published before a crash');
  }
}
