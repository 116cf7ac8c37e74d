import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { openDatabase } from './database.mjs';
import type { SqlValue } from './query.ts';

/**
 * A connection that only reads. The reads that a callback of the event loop makes, up to where it waits for something else, share one
 * transaction: each transaction locks and unlocks the file, which takes as long as a read. So they see one state of the database,
 * in which everything is written that any code which ran before in this thread may know of.
 */
export class SqliteReader implements Disposable {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(file: string) {
    this.#database = openDatabase(file);
    this.#database.exec('PRAGMA query_only = TRUE');
  }

  all(sql: string, values: readonly SqlValue[]): unknown[] {
    return this.#statement(sql).all(...values);
  }

  first(sql: string, value: SqlValue): unknown {
    return this.#statement(sql).get(value);
  }

  [Symbol.dispose](): void {
    this.#end();
    this.#database.close();
  }

  #statement(sql: string): StatementSync {
    this.#begin();
    return this.#prepared(sql);
  }

  #begin(): void {
    if (this.#database.isTransaction) return;
    this.#prepared('BEGIN').run();
    // Runs when no promise is left whose code could go on now.
    process.nextTick(() => this.#end());
  }

  #end(): void {
    if (this.#database.isOpen && this.#database.isTransaction) this.#prepared('COMMIT').run();
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, (statement = this.#database.prepare(sql)));
    return statement;
  }
}
