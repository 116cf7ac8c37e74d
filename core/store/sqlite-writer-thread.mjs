/**
 * The thread that writes: the only connection that does. Started by `sqlite-writer.ts`. In JavaScript: for TypeScript, Node
 * would load what strips its types into each thread, which takes 10 MB.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from './sqlite-database.mjs';

/** @import { DatabaseSync, StatementSync } from 'node:sqlite' */
/** @import { MessagePort } from 'node:worker_threads' */
/** @import { ThreadAnswer, ThreadData, ThreadRequest, Write } from './sqlite-writes.ts' */

/** The version of the layout of tables. A newer Berth that changes it raises this, so that an older one keeps off. */
const layoutVersion = 1;

/**
 * @param {MessagePort} port
 * @param {ThreadData} data
 */
function start(port, data) {
  const answer = (/** @type {ThreadAnswer} */ message) => port.postMessage(message);
  /** @type {DatabaseSync} */
  let database;
  try {
    database = openDatabase(data.file);
    layOut(database, data);
  } catch (error) {
    answer({ kind: 'failed', message: messageOf(error) });
    port.close();
    return;
  }
  const statements = new Statements(database);
  port.on('message', (/** @type {ThreadRequest} */ request) => {
    if (request.kind === 'write') {
      answer(writeAll(database, statements, request.writes));
    } else {
      database.close();
      port.close();
    }
  });
  answer({ kind: 'opened' });
}

/**
 * Makes missing tables and indexes, and drops indexes that are declared no longer, or differently.
 *
 * @param {DatabaseSync} database
 * @param {ThreadData} data
 */
function layOut(database, data) {
  const { user_version: found } = database.prepare('PRAGMA user_version').get() ?? {};
  if (Number(found) > layoutVersion) throw new Error('The data was written by a newer version, use that one');
  const indexesOf = database.prepare(
    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql NOT NULL",
  );
  database.exec('BEGIN IMMEDIATE');
  database.exec(`PRAGMA user_version = ${layoutVersion}`);
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
    database.exec('BEGIN IMMEDIATE');
    const happened = writes.map((write) => statements.run(write));
    database.exec('COMMIT');
    return { kind: 'written', happened };
  } catch (error) {
    const message = messageOf(error);
    if (database.isTransaction) database.exec('ROLLBACK');
    return { kind: 'failed', message };
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
   * Runs one write, and tells whether it happened.
   *
   * @param {Write} write
   */
  run(write) {
    return this.#change(write) === 1;
  }

  /** @param {Write} write */
  #change(write) {
    const { table, id } = write;
    if (write.kind === 'insert') {
      const sql = `INSERT INTO "${table}" (id, version, document) VALUES (?, 1, ?) ON CONFLICT (id) DO NOTHING`;
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

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

if (parentPort) start(parentPort, /** @type {ThreadData} */ (workerData));
