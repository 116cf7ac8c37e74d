/** The settings of every connection. In JavaScript, because the writer's thread needs it: see `writer-thread.mjs`. */
import { DatabaseSync } from 'node:sqlite';

/** How long a connection waits for the other one's lock, which is held for moments only (at opening and closing). */
const busyTimeoutMs = 5_000;

/** `PRAGMA synchronous` answers with a number; this is FULL: every commit is synced before it counts. */
const synchronousFull = 2;

/** A write-ahead log that one large transaction blew up is cut back to this at the next checkpoint. */
const keptLogBytes = 64 * 1024 * 1024;

/** The part of the data that is kept in memory, in KiB: enough for the upper levels of every index. */
const cacheKib = 16 * 1024;

/** SQLite's result codes stand in the lowest byte, details above: https://sqlite.org/rescode.html */
const resultCodeMask = 0xff;
const sqliteFull = 13;

/** The index of the write-ahead log could not be made larger: in memory that is a file, and so on the disk. */
const sqliteIoErrShmSize = 4874;

/**
 * Whether SQLite failed because the disk is full.
 *
 * @param {unknown} error
 */
export function isFull(error) {
  const { errcode = 0 } = /** @type {{ errcode?: number }} */ (error);
  return (errcode & resultCodeMask) === sqliteFull || errcode === sqliteIoErrShmSize;
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
    // Before anything is written: it cannot be changed later, and to set it again writes, which a full disk could refuse. What is
    // free is given back by the writer, in small steps.
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
      throw new Error(`SQLite refuses to write durably here (${settings})`);
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
