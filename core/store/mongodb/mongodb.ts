/**
 * Documents in MongoDB: a standalone server, a replica set or a sharded cluster, shared by any number of processes.
 *
 * A collection of the port is a collection of MongoDB, a document is `{_id, version, born, document: {its fields without id}}`. It
 * is replaced as a whole if its version is still the one that was read. Berth uses no transactions and no sessions.
 * A `find` may miss a document that moves within the index meanwhile. Each returned document is in its state at some moment of
 * the search.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { serialize } from 'node:v8';
import type { Db, MongoClient } from 'mongodb';
import { KeyedMutex } from '../../async/keyed-mutex.ts';
import { OpenOperations } from '../../async/open-operations.ts';
import type { Log } from '../../log/log.ts';
import { connectMongo, serverHello, withPatientMongo } from './client.ts';
import type { MongoOptions } from './client.ts';
import { ServerTime } from '../store-time.ts';
import { fromMongo, toMongo } from './document.ts';
import { isOutOfSpace, isUnknownHint, mongoProblem } from './errors.ts';
import { makeIndexes } from './indexes.ts';
import { mongoQuery } from './query.ts';
import type { MongoQuery } from './query.ts';
import { insertRecord, recordsOf, removeRecord, replaceRecord } from './records.ts';
import type { MongoRecord, MongoRecords } from './records.ts';
import { assertStorable, declared } from '../query-plan.ts';
import type { AnyCollection } from '../query-plan.ts';
import { scanInBatches } from '../scan.ts';
import { RequestCoalescer } from '../../async/request-coalescer.ts';
import { StoreError } from '../store.ts';
import type { Collection, Query, Scan, Store, StoredDocument } from '../store.ts';

export interface MongoStoreOptions extends MongoOptions {
  /** All collections that will be used. Their indexes are created at opening, and undeclared ones are removed. */
  readonly collections: readonly AnyCollection[];
  readonly log: Log;
}

/** After this number of conflicts a change pauses before it retries: in each round one writer succeeds. */
const conflictsWithoutPause = 2;

/** Limit of the random pause, which starts at up to 1 ms and doubles with each conflict: about ten round trips. */
const maxPauseMs = 32;

/** Opens the store. Throws `StoreError` `unavailable` if no server answers within some seconds. */
export async function openMongoStore(options: MongoStoreOptions): Promise<Store> {
  const { collections, log } = options;
  return await storeErrors(async () => {
    const { client, db } = await connectMongo(options);
    try {
      await withPatientMongo(options, async (patient) => await makeIndexes(patient, collections, log));
      return new MongoStore({ client, db, collections, log });
    } catch (error) {
      await client.close();
      throw error;
    }
  });
}

interface Parts {
  readonly client: MongoClient;
  readonly db: Db;
  readonly collections: readonly AnyCollection[];
  readonly log: Log;
}

class MongoStore implements Store {
  readonly isShared = true;
  readonly #client: MongoClient;
  readonly #db: Db;
  readonly #log: Log;
  readonly #collections: ReadonlyMap<string, AnyCollection>;
  readonly #time: ServerTime;
  /** Changes of one document run one after another, so that they cause no conflicts with each other. */
  readonly #changes = new KeyedMutex();
  readonly #operations = new OpenOperations();
  readonly #searches = new RequestCoalescer<readonly MongoRecord[]>();
  readonly #opened = new Map<string, MongoRecords>();
  #closed: Promise<void> | undefined;

  constructor({ client, db, collections, log }: Parts) {
    this.#client = client;
    this.#db = db;
    this.#log = log;
    this.#collections = new Map(collections.map((collection) => [collection.name, collection]));
    this.#time = new ServerTime(async () => (await serverHello(db))['localTime'] as Date);
  }

  async now(): Promise<Date> {
    return await this.#run(async () => await this.#time.now());
  }

  async ping(): Promise<void> {
    await this.#run(async () => await this.#db.command({ ping: 1 }));
  }

  async get<T extends StoredDocument>(collection: Collection<T>, id: string): Promise<T | undefined> {
    const records = this.#records(collection);
    return await this.#run(async () => {
      const record = await records.reads.ask(id);
      return record ? (documentOf(record) as T) : undefined;
    });
  }

  async insert<T extends StoredDocument>(collection: Collection<T>, document: T): Promise<void> {
    const records = this.#records(collection);
    const { id } = document;
    const { fields } = this.#prepared(collection, id, document);
    if (await this.#run(async () => await insertRecord(records, id, fields))) return;
    throw new StoreError('duplicate', `There is already a document "${id}" in "${collection.name}"`);
  }

  async update<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    change: (current: T) => T,
  ): Promise<T | undefined> {
    return await this.#change(collection, id, async (records, record) => {
      const current = documentOf(record) as T;
      const next = change(current);
      if (next === current) return { result: current };
      const { fields, plain } = this.#prepared(collection, id, next);
      return (await replaceRecord(records, record, fields)) ? { result: plain } : undefined;
    });
  }

  async delete<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    when: (current: T) => boolean = () => true,
  ): Promise<boolean> {
    const deleted = await this.#change(collection, id, async (records, record) => {
      if (!when(documentOf(record) as T)) return { result: false };
      return (await removeRecord(records, record)) ? { result: true } : undefined;
    });
    return deleted ?? false;
  }

  async find<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<T[]> {
    const found = await this.#find(collection, mongoQuery(declared(this.#collections, collection.name), query));
    return Array.from(found, (record) => documentOf(record) as T);
  }

  async findIds<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<string[]> {
    const planned = mongoQuery(declared(this.#collections, collection.name), query);
    const found = await this.#find(collection, { ...planned, projection: { _id: 1 } });
    return Array.from(found, ({ _id }) => _id);
  }

  scan<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    scan: Scan<T, Index>,
  ): AsyncGenerator<T, void, undefined> {
    return scanInBatches(this, collection, scan);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#operations.settled().then(async () => await this.#client.close());
    await this.#closed;
  }

  async #find(collection: { readonly name: string }, planned: MongoQuery): Promise<Iterable<MongoRecord>> {
    const records = this.#records(collection);
    // In MongoDB a limit of 0 means no limit.
    if (planned.limit === 0) return [];
    for (;;) {
      const found = await this.#run(async () => await this.#searchOnce(records, planned));
      // A document that moves within the index during the search may be found twice; the later state is returned.
      const distinct = new Map(found.map((record) => [record._id, record]));
      // Fewer documents than the limit would mean that there are no more.
      if (distinct.size < found.length && found.length === planned.limit) continue;
      return distinct.values();
    }
  }

  async #searchOnce(records: MongoRecords, planned: MongoQuery): Promise<readonly MongoRecord[]> {
    const name = `${records.collection.collectionName} ${serialize(planned).toString('latin1')}`;
    return await this.#searches.run(name, async () => await this.#search(records, planned));
  }

  async #search({ collection }: MongoRecords, { filter, hint, ...search }: MongoQuery): Promise<MongoRecord[]> {
    try {
      return await collection.find(filter, { ...search, hint }).toArray();
    } catch (error) {
      if (!isUnknownHint(error)) throw error;
      this.#log.warn(
        { collection: collection.collectionName, index: Object.keys(hint) },
        'An index is missing, the query runs without it',
      );
      return await collection.find(filter, search).toArray();
    }
  }

  /** Reads a document and changes it; repeats that while other writers change it in between. */
  async #change<R>(
    collection: { readonly name: string },
    id: string,
    change: (records: MongoRecords, record: MongoRecord) => Promise<{ result: R } | undefined>,
  ): Promise<R | undefined> {
    const records = this.#records(collection);
    const changeOnce = async () => {
      for (let conflicts = 0; ; conflicts += 1) {
        const record = await records.reads.ask(id);
        if (!record) return undefined;
        const changed = await change(records, record);
        if (changed) return changed.result;
        await pauseAfter(conflicts);
      }
    };
    return await this.#run(async () => await this.#changes.run(`${collection.name}/${id}`, changeOnce));
  }

  async #run<R>(operation: () => Promise<R>): Promise<R> {
    this.#assertOpen();
    return await this.#operations.run(async () => await storeErrors(operation));
  }

  #prepared<T extends StoredDocument>(collection: { readonly name: string }, id: string, document: T) {
    assertStorable(declared(this.#collections, collection.name), id, document);
    return toMongo(document);
  }

  #records(collection: { readonly name: string }): MongoRecords {
    this.#assertOpen();
    const { name } = declared(this.#collections, collection.name);
    let records = this.#opened.get(name);
    if (!records) this.#opened.set(name, (records = recordsOf(this.#db.collection<MongoRecord>(name))));
    return records;
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError('unavailable', 'The store is closed');
  }
}

function documentOf({ _id, document }: MongoRecord): unknown {
  return fromMongo(_id, document);
}

/** Turns errors of MongoDB into `StoreError`s. */
async function storeErrors<R>(action: () => Promise<R>): Promise<R> {
  try {
    return await action();
  } catch (error) {
    const problem = mongoProblem(error);
    if (problem === undefined) throw error;
    throw new StoreError('unavailable', `The store cannot be used: ${problem}`, {
      cause: error,
      isFull: isOutOfSpace(error),
    });
  }
}

async function pauseAfter(conflicts: number): Promise<void> {
  if (conflicts < conflictsWithoutPause) return;
  await sleep(Math.random() * Math.min(maxPauseMs, 2 ** (conflicts - conflictsWithoutPause)));
}
