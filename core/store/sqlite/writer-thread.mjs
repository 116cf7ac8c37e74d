/**
 * The writer thread, which has the only connection that writes. Started by `writer.ts`. Written in JavaScript, because for TypeScript
 * Node would load its type stripper into each thread, which takes 10 MB.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { collectAfterMs, collectStartupGarbage } from '../../heap/collect-start.mjs';
import { isFull, openDatabase } from './database.mjs';

/** @import { DatabaseSync, StatementSync } from 'node:sqlite' */
/** @import { MessagePort } from 'node:worker_threads' */
/** @import { ThreadAnswer, ThreadData, ThreadRequest, Write } from './writer.ts' */

/** The version of the tables' layout. Raised with each change of the layout, so that older versions of Berth reject the data. */
const layoutVersion = 1;

/** Free pages that stay in the file, 4 MiB: about what a minute of ordinary use deletes, for the next inserts. */
const keptFreePages = 1024;

/** The most pages that one step returns to the disk, 1 MiB: more than a batch of deletions frees, and it takes a millisecond or two. */
const stepPages = 256;

/**
 * @param {MessagePort} owner - the port to the thread that started this one
 * @param {ThreadData} data
 */
function start(owner, data) {
  /** @type {DatabaseSync} */
  let database;
  try {
    database = openDatabase(data.file);
    updateSchema(database, data);
  } catch (error) {
    answer(owner, failure(error));
    owner.close();
    return;
  }
  const requests = new Requests(owner, database);
  requests.listen(owner);
  setTimeout(collectStartupGarbage, collectAfterMs).unref();
  answer(owner, { kind: 'opened' });
}

/**
 * @param {MessagePort} port
 * @param {ThreadAnswer} message
 */
function answer(port, message) {
  port.postMessage(message);
}

/** Handles the requests of all threads, one after another. */
class Requests {
  #owner;
  #database;
  #statements;
  #countFree;
  /** The ports of the other threads. */
  #others = /** @type {Set<MessagePort>} */ (new Set());

  /**
   * @param {MessagePort} owner
   * @param {DatabaseSync} database
   */
  constructor(owner, database) {
    this.#owner = owner;
    this.#database = database;
    this.#statements = new Statements(database);
    this.#countFree = database.prepare('PRAGMA freelist_count');
  }

  /** @param {MessagePort} port */
  listen(port) {
    port.on('message', (/** @type {ThreadRequest} */ request) => {
      if (request.kind === 'write') {
        answer(port, writeAll(this.#database, this.#statements, request.writes));
        returnFreePages(this.#database, this.#countFree);
      } else if (request.kind === 'connect') this.#connect(request.port);
      else this.#close(port);
    });
  }

  /** @param {MessagePort} port */
  #connect(port) {
    this.#others.add(port);
    port.on('close', () => this.#others.delete(port));
    this.listen(port);
  }

  /** @param {MessagePort} port */
  #close(port) {
    port.close();
    if (port !== this.#owner) return;
    for (const other of this.#others) other.close();
    this.#database.close();
  }
}

/**
 * Creates missing tables and indexes, and drops indexes that are no longer declared or differ.
 *
 * @param {DatabaseSync} database
 * @param {ThreadData} data
 */
function updateSchema(database, data) {
  const { user_version: found } = database.prepare('PRAGMA user_version').get() ?? {};
  if (Number(found) > layoutVersion) throw new Error('The data was written by a newer version, use that one');
  const indexesOf = database.prepare(
    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql NOT NULL",
  );
  database.exec('BEGIN IMMEDIATE');
  // Without a change nothing is written: a write would fail on a full disk.
  if (Number(found) < layoutVersion) database.exec(`PRAGMA user_version = ${layoutVersion}`);
  for (const sql of data.tables) database.exec(sql);
  for (const [table, declared] of data.indexes) {
    const missing = new Map(declared);
    for (const index of indexesOf.all(table)) {
      const name = String(index['name']);
      if (declared.get(name) === index['sql']) missing.delete(name);
      else database.exec(`DROP INDEX "${name}"`);
    }
    for (const sql of missing.values()) database.exec(sql);
  }
  database.exec('COMMIT');
}

/**
 * @param {DatabaseSync} database
 * @param {Statements} statements
 * @param {readonly Write[]} writes
 * @returns {ThreadAnswer}
 */
function writeAll(database, statements, writes) {
  try {
    return commit(database, statements, writes);
  } catch (error) {
    if (!isFull(error)) return failure(error);
  }
  try {
    // The write-ahead log cannot grow. After this checkpoint has copied it into the database, it is overwritten from its beginning.
    database.exec('PRAGMA wal_checkpoint(RESTART)');
    return commit(database, statements, writes);
  } catch (error) {
    return failure(error);
  }
}

/**
 * @param {DatabaseSync} database
 * @param {Statements} statements
 * @param {readonly Write[]} writes
 * @returns {ThreadAnswer}
 */
function commit(database, statements, writes) {
  try {
    database.exec('BEGIN IMMEDIATE');
    const happened = writes.map((write) => statements.run(write));
    database.exec('COMMIT');
    return { kind: 'written', happened };
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/**
 * Truncates the file by one step if it has many free pages. Runs in a separate transaction, so that no write fails with it. If it
 * fails because there is no space for the log, the next write retries it.
 *
 * @param {DatabaseSync} database
 * @param {StatementSync} countFree
 */
function returnFreePages(database, countFree) {
  try {
    const { freelist_count: free } = countFree.get() ?? {};
    const excess = Number(free) - keptFreePages;
    if (excess > 0) database.exec(`PRAGMA incremental_vacuum(${Math.min(excess, stepPages)})`);
  } catch {
    if (database.isTransaction) database.exec('ROLLBACK');
  }
}

class Statements {
  #database;
  /** @type {Map<string, StatementSync>} */
  #prepared = new Map();

  /** @param {DatabaseSync} database */
  constructor(database) {
    this.#database = database;
  }

  /**
   * Runs one write, and returns whether it happened.
   *
   * @param {Write} write
   */
  run(write) {
    if (write.kind === 'probe') {
      // SQLite writes the value even if it is unchanged.
      this.#database.exec(`PRAGMA user_version = ${layoutVersion}`);
      return true;
    }
    return this.#change(write) === 1;
  }

  /** @param {Exclude<Write, { kind: 'probe' }>} write */
  #change(write) {
    const { table, id } = write;
    if (write.kind === 'insert') {
      // A random first version: a change of a deleted document must not apply to a later one with the same ID.
      const sql = `INSERT INTO "${table}" (id, version, document) VALUES (?, abs(random() % 1000000000000), ?) ON CONFLICT (id) DO NOTHING`;
      return this.#prepare(sql).run(id, write.document).changes;
    }
    if (write.kind === 'replace') {
      const sql = `UPDATE "${table}" SET version = version + 1, document = ? WHERE id = ? AND version = ?`;
      return this.#prepare(sql).run(write.document, id, write.version).changes;
    }
    return this.#prepare(`DELETE FROM "${table}" WHERE id = ? AND version = ?`).run(id, write.version).changes;
  }

  /** @param {string} sql */
  #prepare(sql) {
    let statement = this.#prepared.get(sql);
    if (!statement) this.#prepared.set(sql, (statement = this.#database.prepare(sql)));
    return statement;
  }
}

/**
 * @param {unknown} error
 * @returns {ThreadAnswer}
 */
function failure(error) {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: 'failed', message, isFull: isFull(error) };
}

if (parentPort) start(parentPort, /** @type {ThreadData} */ (workerData));
