/** The files of a SQLite database. */
import { randomBytes } from 'node:crypto';
import { chmod, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifPresent } from '../files/system-code.ts';

const ownerOnly = 0o600;

/**
 * Makes the file of a database that is about to be opened, if it is not there, and lets only its owner read it and what SQLite
 * keeps beside it: a write-ahead log, and an index of that, which SQLite makes with the mode of the database itself.
 */
export async function makePrivate(file: string): Promise<void> {
  await using _made = await open(file, 'a', ownerOnly);
  for (const suffix of ['', '-wal', '-shm']) await ifPresent(chmod(`${file}${suffix}`, ownerOnly));
}

/**
 * Reserves space for the next opening. SQLite cannot even read without the index of its write-ahead log, which it deletes when it is
 * closed and creates when it is opened. On a disk that has filled up meanwhile it cannot. So a ballast file stands beside the
 * database, and is deleted when its space is needed.
 */
const ballastFile = 'berth.ballast';

/** The index takes 32 KiB. The rest is a write-ahead log with room for some hundred small writes, which can be written anew. */
const ballastBytes = 1024 * 1024;

/** Puts the ballast into a folder, or as much of it as the disk has room for. Never throws: the store works without. */
export async function loadBallast(folder: string): Promise<void> {
  const path = join(folder, ballastFile);
  try {
    await using file = await open(path, 'a', ownerOnly);
    await file.chmod(ownerOnly);
    const { size } = await file.stat();
    // Random: some file systems would store zeros in no space.
    if (size < ballastBytes) await file.writeFile(randomBytes(ballastBytes - size));
  } catch {
    // What was written before the disk was full counts.
  }
}

/** Gives the ballast's space to what needs it now. @returns whether there was any. */
export async function dropBallast(folder: string): Promise<boolean> {
  const path = join(folder, ballastFile);
  const found = await ifPresent(stat(path));
  await rm(path, { force: true });
  return found !== undefined && found.size > 0;
}
