/** The files of a SQLite database. */
import { chmod, open } from 'node:fs/promises';
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
