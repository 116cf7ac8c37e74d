/** Documents in a SQLite file, for the threads of one process. */
import { join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import { KeyedMutex } from '../../async/keyed-mutex.ts';
import { OpenOperations } from '../../async/open-operations.ts';
import { makeDurableFolder } from '../../files/durable.ts';
import { systemCode } from '../../files/system-code.ts';
import type { Log } from '../../log/log.ts';
import { documentToText, textToDocument } from '../document-text.ts';
import { MonotonicTime, ownClocks } from '../store-time.ts';
import { assertStorable, declared } from '../query-plan.ts';
import type { AnyCollection } from '../query-plan.ts';
import { dropBallast, loadBallast, makePrivate } from './files.ts';
import { isFull } from './database.mjs';
import { scanInBatches } from '../scan.ts';
import { indexSql, querySql, readSql, tableSql } from './query.ts';
import { lockFolder } from './lock.ts';
import { SqliteReader } from './reader.ts';
import { connectSqliteWriter, openSqliteWriter } from './writer.ts';
import type { SqliteWriter, ThreadData } from './writer.ts';
import { StoreError } from '../store.ts';
import type { Collection, Query, Scan, Store, StoredDocument } from '../store.ts';

export interface SqliteStoreOptions {
  /** The data folder; created if missing. Never on a network file system, where SQLite's locks do not work. */
  readonly folder: string;
  /** All collections that will be used. Their tables and indexes are created at opening. */
  readonly collections: readonly AnyCollection[];
  readonly log: Log;
}

/** What another thread of this process needs to open the same store. The port must be transferred to it. */
export interface SqliteShare {
  readonly file: string;
  readonly port: MessagePort;
}

/** The store in the thread that opened it. */
export interface OwnedSqliteStore extends Store {
  /** Shares the store with one other thread, which calls `openSharedSqliteStore` and must close its store before this one is closed. */
  share(): SqliteShare;
}

const databaseFile = 'berth.db';

/**
 * Opens the store in `folder`, also on a full disk if it was opened there before. Throws `StoreError` `locked` if another process,
 * or this one, has it open.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<OwnedSqliteStore> {
  const { folder, collections } = options;
  await using resources = new AsyncDisposableStack();
  try {
    await makeDurableFolder(folder);
    resources.use(lockFolder(folder));
    // The space that the next opening needs becomes free when the database is closed.
    resources.defer(async () => await loadBallast(folder));
    const { reader, writer } = resources.use(await openWithBallast(options));
    const share = () => ({ file: join(folder, databaseFile), port: writer.connect() });
    return Object.assign(new SqliteStore({ reader, writer, collections, resources: resources.move() }), { share });
  } catch (error) {
    throw error instanceof TypeError ? error : storeError(error);
  }
}

/**
 * Opens the store that another thread of this process has opened. It reads with its own connection, so that no thread waits for
 * another one, and writes through the same writer thread.
 */
export async function openSharedSqliteStore(
  { file, port }: SqliteShare,
  { collections, log }: Omit<SqliteStoreOptions, 'folder'>,
): Promise<Store> {
  await using resources = new AsyncDisposableStack();
  try {
    const writer = resources.use(connectSqliteWriter(port, log));
    const reader = resources.use(new SqliteReader(file));
    return new SqliteStore({ reader, writer, collections, resources: resources.move() });
  } catch (error) {
    throw storeError(error);
  }
}

interface Connections extends AsyncDisposable {
  readonly reader: SqliteReader;
  readonly writer: SqliteWriter;
}

async function openWithBallast(options: SqliteStoreOptions): Promise<Connections> {
  const { folder, log } = options;
  try {
    const connections = await openConnections(options);
    await loadBallast(folder);
    return connections;
  } catch (error) {
    if (!storeError(error).isFull || !(await dropBallast(folder))) throw error;
    log.warn('The disk is full, opening the store in the space of its ballast file');
    return await openConnections(options);
  }
}

async function openConnections({ folder, collections, log }: SqliteStoreOptions): Promise<Connections> {
  await using opening = new AsyncDisposableStack();
  const file = join(folder, databaseFile);
  await makePrivate(file);
  const writer = opening.use(await openSqliteWriter(threadData(file, collections), log));
  const reader = opening.use(new SqliteReader(file));
  const opened = opening.move();
  return { reader, writer, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

interface Parts extends Pick<Connections, 'reader' | 'writer'> {
  readonly collections: readonly AnyCollection[];
  readonly resources: AsyncDisposableStack;
}

/** A row of a collection's table. */
interface Row {
  readonly version: number;
  readonly document: string;
}

class SqliteStore implements Store {
  readonly isShared = false;
  readonly #time = new MonotonicTime(ownClocks);
  readonly #reader: SqliteReader;
  readonly #writer: SqliteWriter;
  readonly #collections: ReadonlyMap<string, AnyCollection>;
  /** For each collection, the statement that reads a document. */
  readonly #reads: ReadonlyMap<string, string>;
  readonly #resources: AsyncDisposableStack;
  /** Changes of one document run one after another, so that they cause no conflicts with each other. */
  readonly #changes = new KeyedMutex();
  readonly #operations = new OpenOperations();
  #closed: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#reader = parts.reader;
    this.#writer = parts.writer;
    this.#collections = new Map(parts.collections.map((collection) => [collection.name, collection]));
    this.#reads = new Map(parts.collections.map(({ name }) => [name, readSql(name)]));
    this.#resources = parts.resources;
  }

  async now(): Promise<Date> {
    this.#assertOpen();
    return this.#time.now();
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    reading(() => this.#reader.all('SELECT 1', []));
    await this.#operations.run(async () => await this.#writer.ping());
  }

  async get<T extends StoredDocument>(collection: Collection<T>, id: string): Promise<T | undefined> {
    this.#assertOpen();
    const row = this.#read(collection, id);
    return row && (textToDocument(row.document) as T);
  }

  async insert<T extends StoredDocument>(collection: Collection<T>, document: T): Promise<void> {
    this.#assertOpen();
    const { id } = document;
    const text = this.#text(collection, id, document);
    const happened = await this.#operations.run(
      async () => await this.#writer.write({ kind: 'insert', table: collection.name, id, document: text }),
    );
    if (!happened) throw new StoreError('duplicate', `There is already a document "${id}" in "${collection.name}"`);
  }

  async update<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    change: (current: T) => T,
  ): Promise<T | undefined> {
    this.#assertOpen();
    return await this.#change(collection, id, async () => {
      for (let row = this.#read(collection, id); row; row = this.#read(collection, id)) {
        const current = textToDocument(row.document) as T;
        const next = change(current);
        if (next === current) return current;
        const document = this.#text(collection, id, next);
        const { version } = row;
        const happened = await this.#writer.write({ kind: 'replace', table: collection.name, id, version, document });
        if (happened) return textToDocument(document) as T;
      }
      return undefined;
    });
  }

  async delete<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    when: (current: T) => boolean = () => true,
  ): Promise<boolean> {
    this.#assertOpen();
    return await this.#change(collection, id, async () => {
      for (let row = this.#read(collection, id); row; row = this.#read(collection, id)) {
        if (!when(textToDocument(row.document) as T)) return false;
        const { version } = row;
        if (await this.#writer.write({ kind: 'remove', table: collection.name, id, version })) return true;
      }
      return false;
    });
  }

  async find<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<T[]> {
    this.#assertOpen();
    const { text, values } = querySql(declared(this.#collections, collection.name), query);
    const rows = reading(() => this.#reader.all(text, values)) as { document: string }[];
    return rows.map((row) => textToDocument(row.document) as T);
  }

  async findIds<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<string[]> {
    this.#assertOpen();
    const { text, values } = querySql(declared(this.#collections, collection.name), query, 'id');
    const rows = reading(() => this.#reader.all(text, values)) as { id: string }[];
    return rows.map(({ id }) => id);
  }

  scan<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    scan: Scan<T, Index>,
  ): AsyncGenerator<T, void, undefined> {
    return scanInBatches(this, collection, scan);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  /** Finishes accepted operations, then closes. */
  async #close(): Promise<void> {
    // Also runs changes that wait for other changes of the same document. New operations are rejected meanwhile.
    await this.#operations.settled();
    await this.#resources.disposeAsync();
  }

  async #change<R>(collection: { name: string }, id: string, change: () => Promise<R>): Promise<R> {
    return await this.#operations.run(async () => await this.#changes.run(`${collection.name}/${id}`, change));
  }

  #read(collection: { name: string }, id: string): Row | undefined {
    const sql = this.#reads.get(declared(this.#collections, collection.name).name) ?? '';
    return reading(() => this.#reader.first(sql, id)) as Row | undefined;
  }

  #text(collection: { name: string }, id: string, document: StoredDocument): string {
    assertStorable(declared(this.#collections, collection.name), id, document);
    return documentToText(document);
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError('unavailable', 'The store is closed');
  }
}

function reading<R>(read: () => R): R {
  try {
    return read();
  } catch (error) {
    throw storeError(error);
  }
}

function threadData(file: string, collections: readonly AnyCollection[]): ThreadData {
  return {
    file,
    tables: collections.map(tableSql),
    indexes: new Map(collections.map((collection) => [collection.name, indexSql(collection)])),
  };
}

function storeError(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  const options = { cause, isFull: isFull(cause) || systemCode(cause) === 'ENOSPC' };
  return new StoreError('unavailable', `The store cannot be used: ${why}`, options);
}
