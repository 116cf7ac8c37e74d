import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from './durable-folder.ts';

/** Name of a temporary file in the same directory. */
export function draftOf(path: string): string {
  return `${path}.${randomBytes(4).toString('hex')}`;
}

/** Writes a file that only its owner can read: whole and on the disk, or not at all. What a crash leaves is the draft. */
export async function writeDurably(path: string, text: string, draft = draftOf(path)): Promise<void> {
  // A crash may have left one of the same name.
  await rm(draft, { force: true });
  try {
    await writeSynced(draft, text);
    await rename(draft, path);
  } finally {
    // On a disk that is full it would take what is left.
    await rm(draft, { force: true });
  }
  await syncFolder(dirname(path));
}

/** Writes a file that only its owner can read and that is not there yet, and sees that its bytes are on the disk. */
export async function writeSynced(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(text);
  await file.sync();
}
