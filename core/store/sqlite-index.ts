/**
 * Indexes in SQLite: expressions over the document's text that keep apart, and in order, what an index can hold.
 *
 * SQLite orders NULL, numbers, texts by their bytes, blobs by their bytes. Null, numbers and strings stand for themselves;
 * a boolean is a blob of one byte, 0 or 1; a date is its text as a blob, which begins with a digit (0x30 to 0x39). So no
 * boolean equals a number, no date a string, and the order of types is that of MongoDB.
 */
import type { AnyCollection, IndexType } from './query-plan.ts';
import type { IndexValue } from './store.ts';

/** What a parameter of a statement can be. */
export type SqlValue = number | string | Uint8Array;

/** The name of the column that holds the document's text. */
const documentColumn = 'document';

/** Collections become tables, indexes become indexes: their names go into SQL. */
const collectionPattern = /^[a-z][a-z0-9-]*$/;
const fieldPattern = /^[A-Za-z][A-Za-z0-9]*$/;

const falseBlob = Uint8Array.of(0);
const trueBlob = Uint8Array.of(1);

/** The statement that makes a collection's table. */
export function tableSql(collection: AnyCollection): string {
  assertName(collectionPattern, collection.name);
  return `CREATE TABLE IF NOT EXISTS "${collection.name}" (id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, ${documentColumn} TEXT NOT NULL) STRICT`;
}

/** The statements that make a collection's indexes, by index name. `id` comes last in each, so that order is always total. */
export function indexSql(collection: AnyCollection): Map<string, string> {
  const statements = new Map<string, string>();
  for (const [index, fields] of Object.entries(collection.indexes)) {
    const name = indexName(collection.name, index);
    const columns = [...fields.map(fieldSql), 'id'].join(', ');
    statements.set(name, `CREATE INDEX "${name}" ON "${collection.name}" (${columns})`);
  }
  return statements;
}

/** The name of an index in the database. */
export function indexName(collection: string, index: string): string {
  assertName(collectionPattern, collection);
  assertName(fieldPattern, index);
  return `${collection}.${index}`;
}

/** The expression by which a field is indexed. The planner matches it with the index by its text. */
export function fieldSql(field: string): string {
  assertName(fieldPattern, field);
  if (field === 'id') return 'id';
  const at = `${documentColumn}, '$.${field}`;
  return (
    `CASE json_type(${at}') WHEN 'true' THEN x'01' WHEN 'false' THEN x'00' ` +
    `WHEN 'object' THEN CAST(json_extract(${at}."$date"') AS BLOB) ELSE json_extract(${at}') END`
  );
}

/** What a value becomes to be compared with an indexed field: an expression with one parameter, and the parameter's value. */
export function comparable(value: Exclude<IndexValue, null>): { sql: string; parameter: SqlValue } {
  if (value instanceof Date) {
    const text = value.toISOString();
    // A year after 9999 begins with "+", which is before all digits; ":" is after them. One before 0 begins with "-".
    return { sql: '?', parameter: Buffer.from(text.startsWith('+') ? `:${text}` : text) };
  }
  if (typeof value === 'boolean') return { sql: '?', parameter: value ? trueBlob : falseBlob };
  if (typeof value === 'string') return { sql: '?', parameter: value };
  if (!Number.isFinite(value))
    throw new RangeError(`No document holds the number ${value}, so none can be found by it`);
  // Read by SQLite as the document's own number was: beyond 2^53 its integers differ from JavaScript's.
  return { sql: "json_extract(?, '$')", parameter: JSON.stringify(value) };
}

/**
 * Conditions that hold from where the values of a type start, and up to where they end. `-9e999` is minus infinity, where
 * all that is not null starts: SQLite does not search an index for `IS NOT NULL`.
 */
export const typeBounds: Readonly<Record<IndexType | 'any', { readonly start: string; readonly end?: string }>> = {
  any: { start: '>= -9e999' },
  number: { start: '>= -9e999', end: "< ''" },
  string: { start: ">= ''", end: "< x''" },
  boolean: { start: ">= x''", end: "< x'30'" },
  date: { start: ">= x'30'" },
};

function assertName(pattern: RegExp, name: string): void {
  if (!pattern.test(name)) throw new TypeError(`"${name}" cannot be the name of a collection, an index or its field`);
}
