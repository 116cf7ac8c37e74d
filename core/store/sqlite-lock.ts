/**
 * The lock by which one process owns the data: an exclusive transaction, never ended, on a database of its own. It is the
 * operating system's lock, taken through SQLite, so it is gone with its holder however that ends, and it also holds
 * between two openings in one process. Who holds it stands in a file beside it: a hint for people, not the lock.
 *
 * Nothing else may open the lock's file in this process: closing it would end the lock (a rule of POSIX locks).
 */
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from './store.ts';

const lockFile = 'berth.lock';
const holderFile = 'berth.holder.json';

/** SQLite's result codes stand in the lowest byte, details above: https://sqlite.org/rescode.html */
const resultCodeMask = 0xff;
const sqliteBusy = 5;

interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

/** Takes the lock of a folder of data, until disposed. Throws `StoreError` `locked`, naming the holder. */
export function lockFolder(folder: string): Disposable {
  const lock = new DatabaseSync(join(folder, lockFile));
  const holderPath = join(folder, holderFile);
  try {
    // Nothing is ever written to it, so it needs no journal, which a full disk could refuse.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    chmodSync(join(folder, lockFile), 0o600);
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
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

/** A hint that a full disk has no room for is no reason to fail. */
function writeHolder(holderPath: string): void {
  const holder: Holder = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
  try {
    writeFileSync(holderPath, JSON.stringify(holder), { mode: 0o600 });
  } catch {
    rmSync(holderPath, { force: true });
  }
}

function isBusy(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && (errcode & resultCodeMask) === sqliteBusy;
}

function lockedMessage(folder: string, holderPath: string): string {
  const holder = readHolder(holderPath);
  const who = holder ? `process ${holder.pid} on ${holder.host}, since ${holder.since}` : 'another process';
  return `The data in "${folder}" is in use by ${who}: stop that one, or use another data folder`;
}

/** The holder that the file names, if that can be: someone who died may have left the file, and the next not written it yet. */
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
