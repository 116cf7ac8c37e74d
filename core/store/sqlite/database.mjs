/** The settings of every connection. In JavaScript, because the writer's thread needs it: see `writer-thread.mjs`. */
import { DatabaseSync } from 'node:sqlite';

/** How long a connection waits for another connection's lock, which is held only briefly (at opening and closing). */
const busyTimeoutMs = 5_000;

/** The number that `PRAGMA synchronous` returns for FULL: every commit is synced before it counts. */
const synchronousFull = 2;

/** The size to which the next checkpoint truncates a write-ahead log that a large transaction has enlarged. */
const keptLogBytes = 64 * 1024 * 1024;

/** The part of the data that is kept in memory, in KiB: enough for the upper levels of every index. */
const cacheKib = 16 * 1024;

const sqliteFull = 13;

/** The index of the write-ahead log, a memory-mapped file, could not be enlarged on the disk. */
const sqliteIoErrShmSize = 4874;

/**
 * SQLite's result code of an error. It is in the lowest byte, its details are in the others: https://sqlite.org/rescode.html
 *
 * @param {unknown} error
 * @returns {number}
 */
export function resultCode(error) {
  const { errcode = 0 } = /** @type {{ errcode?: number }} */ (error);
  return errcode & 0xff;
}

/**
 * Whether SQLite failed because the disk is full.
 *
 * @param {unknown} error
 */
export function isFull(error) {
  const { errcode } = /** @type {{ errcode?: number }} */ (error);
  return resultCode(error) === sqliteFull || errcode === sqliteIoErrShmSize;
}

/**
 * Opens a connection whose commits survive a power cut: write-ahead log, synced at every commit. With
 * `synchronous = NORMAL` they would not. Throws where the file system does not allow it.
 *
 * @param {string} file
 * @returns {DatabaseSync}
 */
export function openDatabase(file) {
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  try {
    // Set before the first write, and only then: it cannot be changed later, and setting it again is a write, which fails on a full
    // disk. The writer returns free pages to the disk in small steps.
    const { page_count: pages } = database.prepare('PRAGMA page_count').get() ?? {};
    if (pages === 0) database.exec('PRAGMA auto_vacuum = INCREMENTAL');
    database.exec(
      `PRAGMA cache_size = -${cacheKib}; PRAGMA journal_size_limit = ${keptLogBytes}; PRAGMA fullfsync = 1`,
    );
    const { journal_mode: journalMode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
    database.exec('PRAGMA synchronous = FULL');
    const { synchronous } = database.prepare('PRAGMA synchronous').get() ?? {};
    if (journalMode !== 'wal' || synchronous !== synchronousFull) {
      const settings = `journal ${String(journalMode)}, synchronous ${String(synchronous)}`;
      throw new Error(`SQLite cannot write durably here (${settings})`);
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
