import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Only the platform's user may read its data. */
const ownerOnly = 0o700;

/** Creates a folder and its parents, so that they survive a power cut. */
export async function makeDurableFolder(folder: string): Promise<void> {
  const path = resolve(folder);
  const highestMade = await mkdir(path, { recursive: true, mode: ownerOnly });
  // The parent is synced in any case: a process may have died between creating this folder and syncing the parent.
  const last = dirname(resolve(highestMade ?? path));
  for (let above = dirname(path); ; above = dirname(above)) {
    await syncFolder(above);
    if (above === last || above === dirname(above)) return;
  }
}

/** Makes creations, renames and removals in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}

/** Name of a temporary file in the same directory. */
export function temporaryPath(path: string): string {
  return `${path}.${randomBytes(4).toString('hex')}`;
}

/** Writes a file that only its owner can read, atomically and durably. A crash can leave the temporary file. */
export async function writeDurably(path: string, text: string, temporary = temporaryPath(path)): Promise<void> {
  // A crash may have left a temporary file of the same name.
  await rm(temporary, { force: true });
  try {
    await writeSynced(temporary, text);
    await rename(temporary, path);
  } finally {
    // After an error the temporary file would use the space of a full disk.
    await rm(temporary, { force: true });
  }
  await syncFolder(dirname(path));
}

/** Creates a file that only its owner can read, and syncs its bytes. */
export async function writeSynced(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(text);
  await file.sync();
}

/** TMPFS_MAGIC and RAMFS_MAGIC in linux/magic.h. */
const memoryTypes = [0x01021994, 0x858458f6];

/** Whether a folder is in memory, where files count towards the memory limit of the process. */
export async function isInMemory(folder: string): Promise<boolean> {
  return memoryTypes.includes((await statfs(folder)).type);
}
