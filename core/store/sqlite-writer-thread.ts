/** The thread that writes: the only connection that does. Started by `sqlite-writer.ts`. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { openDatabase } from './sqlite-database.ts';
import type { ThreadAnswer, ThreadData, ThreadRequest, Write } from './sqlite-writes.ts';

/** The version of the layout of tables. A newer Berth that changes it raises this, so that an older one keeps off. */
const layoutVersion = 1;

function start(port: MessagePort, data: ThreadData): void {
  const answer = (message: ThreadAnswer) => port.postMessage(message);
  let database: DatabaseSync;
  try {
    database = openDatabase(data.file);
    layOut(database, data);
  } catch (error) {
    answer({ kind: 'failed', message: messageOf(error) });
    port.close();
    return;
  }
  const statements = new Statements(database);
  port.on('message', (request: ThreadRequest) => {
    if (request.kind === 'write') {
      answer(writeAll(database, statements, request.writes));
    } else {
      database.close();
      port.close();
    }
  });
  answer({ kind: 'opened' });
}

/** Makes missing tables and indexes, and drops indexes that are declared no longer, or differently. */
function layOut(database: DatabaseSync, data: ThreadData): void {
  const { user_version: found } = database.prepare('PRAGMA user_version').get() as { user_version: number };
  if (found > layoutVersion) throw new Error('The data was written by a newer version, use that one');
  const indexesOf = database.prepare(
    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql NOT NULL",
  );
  database.exec('BEGIN IMMEDIATE');
  database.exec(`PRAGMA user_version = ${layoutVersion}`);
  for (const sql of data.tables) database.exec(sql);
  for (const [table, declared] of data.indexes) {
    const missing = new Map(declared);
    for (const { name, sql } of indexesOf.all(table) as { name: string; sql: string }[]) {
      if (declared.get(name) === sql) missing.delete(name);
      else database.exec(`DROP INDEX "${name}"`);
    }
    for (const sql of missing.values()) database.exec(sql);
  }
  database.exec('COMMIT');
}

function writeAll(database: DatabaseSync, statements: Statements, writes: readonly Write[]): ThreadAnswer {
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
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Runs one write, and tells whether it happened. */
  run(write: Write): boolean {
    return this.#change(write) === 1;
  }

  #change(write: Write): number | bigint {
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

  #prepare(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (!statement) this.#prepared.set(sql, (statement = this.#database.prepare(sql)));
    return statement;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

if (parentPort) start(parentPort, workerData as ThreadData);
