import { CodedError } from '../errors/coded-error.ts';

/**
 * The port for documents. The store is the platform's source of truth.
 *
 * A document changes in one way: read, apply a pure function, write if unchanged. There are no transactions across documents;
 * changes of several steps are ordered so that a crash between two steps can be repaired.
 */

/**
 * A document has an ID that is unique in its collection. The other fields are plain data, `Date`s (years 0 to 9999) and
 * `Uint8Array`s; `undefined` fields are omitted, and other values are rejected with a `TypeError`.
 */
export interface StoredDocument {
  readonly id: string;
}

/** A collection of documents of one kind, with its indexes. */
export interface Collection<T extends StoredDocument, Index extends string = string> {
  readonly name: string;
  /** Indexes are not unique: only `id` is. */
  readonly indexes: Readonly<Record<Index, IndexFields<keyof T & string> | PartialIndex<keyof T & string>>>;
}

/** Top-level fields, in order. An absent field counts as `null`. */
export type IndexFields<Field extends string = string> = readonly Field[];

/**
 * An index of the documents in which its first field is not null. The index of a field that few documents have stays small, and
 * inserting other documents does not write to it. A query must name a value or a range of the first field.
 */
export interface PartialIndex<Field extends string = string> {
  readonly fields: IndexFields<Field>;
  readonly omitsNull: true;
}

/** A value that can be indexed. Their order: null, numbers, strings by their UTF-8 bytes, booleans, dates. */
export type IndexValue = string | number | boolean | Date | null;

/** A query of an index: leading fields by equality, then at most one field by range. */
export interface Query<T extends StoredDocument, Index extends string> {
  readonly index: Index;
  /** Values of leading fields of the index. */
  readonly equals?: Readonly<Partial<Record<keyof T & string, IndexValue>>>;
  /**
   * A range over the index's next field, or over `id` if `equals` has them all. `after` and `before` exclude their value; `from` and
   * `to` include it. A range contains only values of its bounds' type, and never null; `after: null` finds all values but null.
   */
  readonly range?: {
    readonly from?: IndexValue;
    readonly after?: IndexValue;
    readonly to?: IndexValue;
    readonly before?: IndexValue;
  };
  /** By the fields of the index that follow `equals`, then by `id`. Default `ascending`. */
  readonly order?: 'ascending' | 'descending';
  /** At most this many documents. Default: all. */
  readonly limit?: number;
}

/** The documents of a scan, in ascending order of the index. */
export interface Scan<T extends StoredDocument, Index extends string> extends Pick<
  Query<T, Index>,
  'index' | 'equals' | 'range'
> {
  /** How many documents are in memory at a time. Default: 500. */
  readonly batchSize?: number;
}

export interface Store extends AsyncDisposable {
  /**
   * Whether other processes can open the same data at the same time. If not, only this process grants leases: a holder that cannot
   * renew because the store cannot be written has not lost its lease to another process.
   */
  readonly isShared: boolean;

  /**
   * The store's time: the only clock of leases. It follows when the clock is set forward, so a lease must not count as expired after
   * a single comparison.
   */
  now(): Promise<Date>;

  /** Throws `StoreError` if the store does not answer, or its last write failed and another one fails too. */
  ping(): Promise<void>;

  get<T extends StoredDocument>(collection: Collection<T>, id: string): Promise<T | undefined>;

  /** Durable when it resolves. Throws `StoreError` with code `duplicate` if the ID is taken. */
  insert<T extends StoredDocument>(collection: Collection<T>, document: NoInfer<T>): Promise<void>;

  /**
   * Replaces a document with the result of `change` if it is unchanged meanwhile; otherwise reads it again and retries. `change` must
   * be pure, because it may run several times. If it returns the same object, nothing is written; if it throws, nothing is written
   * and `update` throws its error. Durable when it resolves.
   *
   * @returns the current document, or `undefined` if there is none with this ID
   */
  update<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    change: (current: T) => T,
  ): Promise<T | undefined>;

  /**
   * Deletes a document if `when` (default: always) returns true for it.
   *
   * @returns whether a document was deleted
   */
  delete<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    when?: (current: T) => boolean,
  ): Promise<boolean>;

  /** Throws `StoreError` with code `not-indexed` if the index does not support the query. */
  find<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<T[]>;

  /** The IDs of the documents that `find` would find, in its order. Reads only the index. Throws as `find`. */
  findIds<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<string[]>;

  /**
   * Yields all documents that `find` would find, read in batches. A document whose indexed fields do not change meanwhile is yielded
   * once, as it was when its batch was read; a document that moves within the index may be yielded twice or not at all. A scan
   * holds no resources in the database: it may take hours, or stop at any document. Throws as `find`.
   */
  scan<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    scan: Scan<T, Index>,
  ): AsyncGenerator<T, void, undefined>;
}

/**
 * `duplicate`: a document with this ID exists. `not-indexed`: no declared index supports the query. `locked`: another process has
 * the data open. `unavailable`: the store cannot be reached or cannot write; a write that fails with it may have happened.
 */
export type StoreErrorCode = 'duplicate' | 'not-indexed' | 'locked' | 'unavailable';

interface StoreErrorOptions extends ErrorOptions {
  readonly isFull?: boolean;
}

export class StoreError extends CodedError<StoreErrorCode> {
  override readonly name = 'StoreError';
  /** Whether the store is `unavailable` because its disk is full: nothing was written, and reads still work. */
  readonly isFull: boolean;

  constructor(code: StoreErrorCode, message: string, options: StoreErrorOptions = {}) {
    super(code, message, options);
    this.isFull = options.isFull ?? false;
  }
}
