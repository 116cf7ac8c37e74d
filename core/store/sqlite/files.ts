/** The files of a SQLite database. */
import { randomBytes } from 'node:crypto';
import { chmod, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifPresent } from '../../files/system-code.ts';

const ownerOnly = 0o600;

/**
 * Creates the file of a database if it is missing, and makes it readable only for its owner, as well as SQLite's write-ahead log and
 * its index. SQLite creates these with the mode of the database file.
 */
export async function makePrivate(file: string): Promise<void> {
  await using _made = await open(file, 'a', ownerOnly);
  for (const suffix of ['', '-wal', '-shm']) await ifPresent(chmod(`${file}${suffix}`, ownerOnly));
}

/**
 * Reserves space for the next opening. SQLite cannot even read without the index of its write-ahead log, which it deletes at closing
 * and creates at opening. That fails if the disk has filled up meanwhile, so a ballast file beside the database is deleted when its
 * space is needed.
 */
const ballastFile = 'berth.ballast';

/** The index takes 32 KiB. The rest is enough for a write-ahead log of about a hundred small writes. */
const ballastBytes = 1024 * 1024;

/** Writes the ballast file, or as much of it as fits on the disk. Never throws: the store also works without it. */
export async function loadBallast(folder: string): Promise<void> {
  const path = join(folder, ballastFile);
  try {
    await using file = await open(path, 'a', ownerOnly);
    await file.chmod(ownerOnly);
    const { size } = await file.stat();
    // Random, because some file systems store zeros without using space.
    if (size < ballastBytes) await file.writeFile(randomBytes(ballastBytes - size));
  } catch {
    // The part that was written before the disk was full is useful too.
  }
}

/** Deletes the ballast file. @returns whether that has freed space */
export async function dropBallast(folder: string): Promise<boolean> {
  const path = join(folder, ballastFile);
  const found = await ifPresent(stat(path));
  await rm(path, { force: true });
  return found !== undefined && found.size > 0;
}
