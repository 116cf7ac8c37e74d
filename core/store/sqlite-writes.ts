/** What the store and its writer thread tell each other. */

/** One write. `replace` and `remove` happen only if the document still has this version, `insert` only if there is none. */
export type Write =
  | { readonly kind: 'insert'; readonly table: string; readonly id: string; readonly document: string }
  | {
      readonly kind: 'replace';
      readonly table: string;
      readonly id: string;
      readonly version: number;
      readonly document: string;
    }
  | { readonly kind: 'remove'; readonly table: string; readonly id: string; readonly version: number }
  /** Changes nothing, and fails when nothing can be written. */
  | { readonly kind: 'probe' };

/** What the thread is started with. */
export interface ThreadData {
  readonly file: string;
  /** Statements that make the tables. */
  readonly tables: readonly string[];
  /** For each table, the statements that make its indexes, by their names. */
  readonly indexes: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/** To the thread: writes for one transaction, or the end. */
export type ThreadRequest = { readonly kind: 'write'; readonly writes: readonly Write[] } | { readonly kind: 'close' };

/** From the thread, in the order of the requests. `failed`: nothing was written, or nothing could be opened. */
export type ThreadAnswer =
  | { readonly kind: 'opened' }
  | { readonly kind: 'written'; readonly happened: readonly boolean[] }
  | { readonly kind: 'failed'; readonly message: string; readonly isFull: boolean };
