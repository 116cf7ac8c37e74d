/**
 * The lock with which one process owns the data: a permanent exclusive transaction on a separate database. It is a lock of the
 * operating system, acquired through SQLite, so it ends with its process, and it also excludes a second opening in the same process.
 * A file beside it names the holder, for error messages only.
 *
 * No other code of this process may open the lock file: closing it would release the lock (a rule of POSIX locks).
 */
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store.ts';
import { resultCode } from './database.mjs';

const lockFile = 'berth.lock';
const holderFile = 'berth.holder.json';

const sqliteBusy = 5;

interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

/** Acquires the lock of a data folder until disposed. Throws `StoreError` `locked`, which names the holder. */
export function lockFolder(folder: string): Disposable {
  const lock = new DatabaseSync(join(folder, lockFile));
  const holderPath = join(folder, holderFile);
  try {
    // It is never written to, so it needs no journal, which could fail on a full disk.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    chmodSync(join(folder, lockFile), 0o600);
  } catch (error) {
    lock.close();
    if (resultCode(error) !== sqliteBusy) throw error;
    throw new StoreError('locked', lockedMessage(folder, holderPath), { cause: error });
  }
  writeHolder(holderPath);
  return {
    [Symbol.dispose]: () => {
      if (!lock.isOpen) return;
      rmSync(holderPath, { force: true });
      lock.close();
    },
  };
}

/** Never fails: on a full disk the file is missing. */
function writeHolder(holderPath: string): void {
  const holder: Holder = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
  try {
    writeFileSync(holderPath, JSON.stringify(holder), { mode: 0o600 });
  } catch {
    rmSync(holderPath, { force: true });
  }
}

function lockedMessage(folder: string, holderPath: string): string {
  const holder = readHolder(holderPath);
  const owner = holder ? `process ${holder.pid} on ${holder.host}, since ${holder.since}` : 'another process';
  return `The data in "${folder}" is in use by ${owner}: stop that process, or use another data folder`;
}

/** The holder in the file, if its process is running. A dead process may have left the file, and the next holder not yet replaced it. */
function readHolder(holderPath: string): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(holderPath, 'utf8')) as Holder;
    return holder.host !== hostname() || isRunning(holder.pid) ? holder : undefined;
  } catch {
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
