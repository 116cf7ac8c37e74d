import type { Clock } from '../../../core/clock/clock.ts';
import { scanInBatches } from '../../../core/store/scan.ts';
import type { Collection, Query, Scan, Store, StoredDocument } from '../../../core/store/store.ts';

/** A real store that counts what it is asked, and whose time is that of a clock. Whoever opened the store closes it. */
export class WatchedStore implements Store {
  readonly #store: Store;
  readonly #clock: Clock;
  /** Operations so far, by their names; `read` counts the documents that came back. */
  readonly counts = { get: 0, insert: 0, update: 0, delete: 0, find: 0, read: 0 };

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  get isShared(): boolean {
    return this.#store.isShared;
  }

  async now(): Promise<Date> {
    return this.#clock.now();
  }

  ping(): Promise<void> {
    return this.#store.ping();
  }

  async get<T extends StoredDocument>(collection: Collection<T>, id: string): Promise<T | undefined> {
    this.counts.get += 1;
    const found = await this.#store.get(collection, id);
    if (found) this.counts.read += 1;
    return found;
  }

  insert<T extends StoredDocument>(collection: Collection<T>, document: NoInfer<T>): Promise<void> {
    this.counts.insert += 1;
    return this.#store.insert(collection, document);
  }

  update<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    change: (current: T) => T,
  ): Promise<T | undefined> {
    this.counts.update += 1;
    return this.#store.update(collection, id, change);
  }

  delete<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    when?: (current: T) => boolean,
  ): Promise<boolean> {
    this.counts.delete += 1;
    return this.#store.delete(collection, id, when);
  }

  async find<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<T[]> {
    this.counts.find += 1;
    const found = await this.#store.find(collection, query);
    this.counts.read += found.length;
    return found;
  }

  scan<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    scan: Scan<T, Index>,
  ): AsyncGenerator<T, void, undefined> {
    return scanInBatches(this, collection, scan);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
