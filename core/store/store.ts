/**
 * The port to documents. The store is the truth of the whole platform: what is not in it did not happen.
 *
 * A document changes in one way: read, apply a pure function, write if nobody wrote in between. There are no transactions
 * across documents; every change of several steps is ordered so that a crash between two of them can be mended.
 */

/**
 * What every document has: an ID that is unique in its collection. The rest is plain data, `Date`s (years 0 to 9999) and
 * `Uint8Array`s; what is `undefined` is left out, and anything else is refused with a `TypeError`.
 */
export interface StoredDocument {
  readonly id: string;
}

/** A collection of documents of one kind, with the indexes by which they can be found. */
export interface Collection<T extends StoredDocument, Index extends string = string> {
  readonly name: string;
  /** Top-level fields of each index, in order. An absent field counts as `null`. Indexes are not unique: only `id` is. */
  readonly indexes: Readonly<Record<Index, readonly (keyof T & string)[]>>;
}

/** A value that an index can hold. In order: null, numbers, strings by their UTF-8 bytes, booleans, dates. */
export type IndexValue = string | number | boolean | Date | null;

/** Which documents of an index to find: leading fields by equality, then at most one field by range. */
export interface Query<T extends StoredDocument, Index extends string> {
  readonly index: Index;
  /** Values of leading fields of the index. */
  readonly equals?: Readonly<Partial<Record<keyof T & string, IndexValue>>>;
  /**
   * A range over the index's next field, or over `id` where `equals` names them all. `after` and `before` exclude their
   * value; `from` and `to` include it. It holds values of its bounds' type only. Null is in no range; `after: null` finds
   * whatever is not null.
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

/** Which documents of an index to go through, in its ascending order. */
export interface Scan<T extends StoredDocument, Index extends string> extends Pick<
  Query<T, Index>,
  'index' | 'equals' | 'range'
> {
  /** How many documents are in memory at a time. Default: 500. */
  readonly batchSize?: number;
}

export interface Store extends AsyncDisposable {
  /**
   * Whether other processes can open the same data at the same time. If not, every lease in it is granted and judged by this
   * process alone: a holder that cannot renew, since the store cannot be written, has lost nothing to another process.
   */
  readonly isShared: boolean;

  /**
   * The store's own time: the only clock by which leases are granted and compared. It follows a clock that is set, so a lease
   * that is over by it is not judged by one look.
   */
  now(): Promise<Date>;

  /** Throws `StoreError` when the store cannot answer, or could not write and still cannot. */
  ping(): Promise<void>;

  get<T extends StoredDocument>(collection: Collection<T>, id: string): Promise<T | undefined>;

  /** Durable when it resolves. Throws `StoreError` with code `duplicate` if the ID is taken. */
  insert<T extends StoredDocument>(collection: Collection<T>, document: NoInfer<T>): Promise<void>;

  /**
   * Replaces a document by what `change` makes of it, if nobody wrote in between; otherwise reads it again and retries.
   * `change` must be pure: it may run several times. If it returns the very document it was given, nothing is written; if
   * it throws, nothing is written and the error comes through. Durable when it resolves.
   *
   * @returns the document as it stands now, or `undefined` if there is none with this ID.
   */
  update<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    change: (current: T) => T,
  ): Promise<T | undefined>;

  /**
   * Deletes a document, if `when` (default: always) still holds for what is deleted.
   *
   * @returns whether a document was deleted.
   */
  delete<T extends StoredDocument>(
    collection: Collection<T>,
    id: string,
    when?: (current: T) => boolean,
  ): Promise<boolean>;

  /** Throws `StoreError` with code `not-indexed` when the index cannot serve the query. */
  find<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    query: Query<T, Index>,
  ): Promise<T[]>;

  /**
   * Goes through all documents that `find` would find, in batches. A document whose fields of the index do not change meanwhile is
   * reported once, as it stood when its batch was read; one that moves within the index may be reported again, or not at all.
   * A scan holds nothing in the database: it may take hours, or be left at any document. Throws as `find`.
   */
  scan<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    scan: Scan<T, Index>,
  ): AsyncGenerator<T, void, undefined>;
}

/**
 * `duplicate`: a document with this ID exists. `not-indexed`: the query does not fit a declared index.
 * `locked`: another process holds the data. `unavailable`: the store cannot be reached or cannot write; if it went away
 * during a write, that may have happened all the same.
 */
export type StoreErrorCode = 'duplicate' | 'not-indexed' | 'locked' | 'unavailable';

interface StoreErrorOptions extends ErrorOptions {
  readonly isFull?: boolean;
}

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;
  /** Whether the store is `unavailable` since its disk is full: nothing was written, and reading goes on. */
  readonly isFull: boolean;

  constructor(code: StoreErrorCode, message: string, options: StoreErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.isFull = options.isFull ?? false;
  }
}
