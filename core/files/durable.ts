import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** What the platform stores is nobody else's business. */
const ownerOnly = 0o700;

/** Makes a folder, and those above it, so that they are still there after a power cut. */
export async function makeDurableFolder(folder: string): Promise<void> {
  const path = resolve(folder);
  const highestMade = await mkdir(path, { recursive: true, mode: ownerOnly });
  // The folder above is synced in any case: whoever made this one may have died before it came to that.
  const last = dirname(resolve(highestMade ?? path));
  for (let above = dirname(path); ; above = dirname(above)) {
    await syncFolder(above);
    if (above === last || above === dirname(above)) return;
  }
}

/** Makes what was created, renamed or removed in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}

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

/** TMPFS_MAGIC and RAMFS_MAGIC of linux/magic.h. */
const memoryTypes = [0x01021994, 0x858458f6];

/** Whether a folder stands in memory: what is kept there takes from what the process may use. */
export async function isInMemory(folder: string): Promise<boolean> {
  return memoryTypes.includes((await statfs(folder)).type);
}
