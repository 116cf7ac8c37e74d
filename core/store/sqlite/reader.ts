import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { openDatabase } from './database.mjs';
import type { SqlValue } from './query.ts';

/**
 * A read-only connection. The reads of one callback of the event loop share a transaction, because each transaction locks and unlocks
 * the file, which takes as long as a read. So these reads see one state of the database, which contains every write that earlier code
 * of this thread may have observed.
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
    // If it begins in a promise callback, it ends after all promise callbacks that can run now; otherwise before them.
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
