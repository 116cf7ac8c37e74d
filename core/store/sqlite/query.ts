/**
 * Queries and indexes in SQLite. Indexes are expressions over the document's text that keep the types of values apart, in order.
 *
 * SQLite orders NULL, numbers, texts by their bytes, blobs by their bytes. Null, numbers and strings are stored as they are;
 * a boolean is a blob of one byte, 0 or 1; a date is its text as a blob, which begins with a digit (0x30 to 0x39). So no
 * boolean equals a number, no date equals a string, and the order of types is that of MongoDB.
 */
import { indexOf, planQuery } from '../query-plan.ts';
import type { AnyCollection, AnyQuery, IndexType, PlannedRange } from '../query-plan.ts';
import type { IndexValue } from '../store.ts';

/** A statement and the values of its parameters. */
export interface Sql {
  readonly text: string;
  readonly values: SqlValue[];
}

/**
 * Translates a query to SQL that its index answers in order, without sorting. The index contains IDs, so that a query for them reads no
 * document. Throws `StoreError` `not-indexed`.
 */
export function querySql(collection: AnyCollection, query: AnyQuery, column: 'document' | 'id' = 'document'): Sql {
  const plan = planQuery(collection, query);
  const where = new Conditions();
  for (const { field, value } of plan.equals) {
    if (value === null) where.add(`${fieldSql(field)} IS NULL`);
    else where.compare(fieldSql(field), '=', value);
  }
  if (plan.range) addRange(where, plan.range);
  const direction = plan.descending ? 'DESC' : 'ASC';
  const order = [...plan.orderBy, 'id'].map((field) => `${fieldSql(field)} ${direction}`);
  const index = indexName(collection.name, query.index);
  return {
    text: `SELECT ${column} FROM "${collection.name}" INDEXED BY "${index}"${where.sql()} ORDER BY ${order.join(', ')} LIMIT ?`,
    // In SQLite a negative limit means no limit.
    values: [...where.values, plan.limit ?? -1],
  };
}

/** Adds the conditions of a range: its bounds, or the start and end of the values of its type. */
function addRange(where: Conditions, range: PlannedRange): void {
  const column = fieldSql(range.field);
  const { type, lower, upper } = range;
  const { start, end } = typeBounds[type];
  if (lower) where.compare(column, lower.included ? '>=' : '>', lower.value);
  else where.add(`${column} ${start}`);
  if (upper) where.compare(column, upper.included ? '<=' : '<', upper.value);
  else if (end) where.add(`${column} ${end}`);
}

class Conditions {
  readonly values: SqlValue[] = [];
  readonly #texts: string[] = [];

  add(text: string): void {
    this.#texts.push(text);
  }

  compare(column: string, operator: '=' | '<' | '<=' | '>' | '>=', value: Exclude<IndexValue, null>): void {
    const { sql, parameter } = comparable(value);
    this.#texts.push(`${column} ${operator} ${sql}`);
    this.values.push(parameter);
  }

  sql(): string {
    return this.#texts.length > 0 ? ` WHERE ${this.#texts.join(' AND ')}` : '';
  }
}

/** A parameter of a statement. */
export type SqlValue = number | string | Uint8Array;

/** The name of the column that holds the document's text. */
const documentColumn = 'document';

/** The names of collections and indexes become part of SQL. */
const collectionPattern = /^[a-z][a-z0-9-]*$/;
const fieldPattern = /^[A-Za-z][A-Za-z0-9]*$/;

const falseBlob = Uint8Array.of(0);
const trueBlob = Uint8Array.of(1);

/** The statement that creates a collection's table. */
export function tableSql(collection: AnyCollection): string {
  assertName(collectionPattern, collection.name);
  return `CREATE TABLE IF NOT EXISTS "${collection.name}" (id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, ${documentColumn} TEXT NOT NULL) STRICT`;
}

/** The statement that reads a document by its ID. */
export function readSql(collection: string): string {
  assertName(collectionPattern, collection);
  return `SELECT version, ${documentColumn} FROM "${collection}" WHERE id = ?`;
}

/** The statements that create a collection's indexes, by index name. `id` comes last in each, so that the order is total. */
export function indexSql(collection: AnyCollection): Map<string, string> {
  const statements = new Map<string, string>();
  for (const [index, declared] of Object.entries(collection.indexes)) {
    const { fields, omitsNull } = indexOf(declared);
    const name = indexName(collection.name, index);
    const columns = [...fields.map(fieldSql), 'id'];
    // The comparison with a value, which each query of a partial index has, implies this condition for the planner.
    const condition = omitsNull ? ` WHERE ${columns[0]} IS NOT NULL` : '';
    statements.set(name, `CREATE INDEX "${name}" ON "${collection.name}" (${columns.join(', ')})${condition}`);
  }
  return statements;
}

/** The name of an index in the database. */
function indexName(collection: string, index: string): string {
  assertName(collectionPattern, collection);
  assertName(fieldPattern, index);
  return `${collection}.${index}`;
}

/** The indexed expression of a field. The planner matches it with the index by its text. */
function fieldSql(field: string): string {
  assertName(fieldPattern, field);
  if (field === 'id') return 'id';
  const at = `${documentColumn}, '$.${field}`;
  return (
    `CASE json_type(${at}') WHEN 'true' THEN x'01' WHEN 'false' THEN x'00' ` +
    `WHEN 'object' THEN CAST(json_extract(${at}."$date"') AS BLOB) ELSE json_extract(${at}') END`
  );
}

/** Converts a value for a comparison with an indexed field: an expression with one parameter, and the parameter's value. */
function comparable(value: Exclude<IndexValue, null>): { sql: string; parameter: SqlValue } {
  if (value instanceof Date) {
    const text = value.toISOString();
    // A year after 9999 begins with "+", which is before all digits; ":" is after them. One before 0 begins with "-".
    return { sql: '?', parameter: Buffer.from(text.startsWith('+') ? `:${text}` : text) };
  }
  if (typeof value === 'boolean') return { sql: '?', parameter: value ? trueBlob : falseBlob };
  if (typeof value === 'string') return { sql: '?', parameter: value };
  if (!Number.isFinite(value))
    throw new RangeError(`No document holds the number ${value}, so none can be found by it`);
  // Parsed by SQLite like the document's number: beyond 2^53 its integers differ from JavaScript's.
  return { sql: "json_extract(?, '$')", parameter: JSON.stringify(value) };
}

/**
 * Conditions for the start and end of the values of a type. `-9e999` is minus infinity, the start of all values but null: SQLite
 * does not search an index for `IS NOT NULL`.
 */
const typeBounds: Readonly<Record<IndexType | 'any', { readonly start: string; readonly end?: string }>> = {
  any: { start: '>= -9e999' },
  number: { start: '>= -9e999', end: "< ''" },
  string: { start: ">= ''", end: "< x''" },
  boolean: { start: ">= x''", end: "< x'30'" },
  date: { start: ">= x'30'" },
};

function assertName(pattern: RegExp, name: string): void {
  if (!pattern.test(name)) throw new TypeError(`"${name}" cannot be the name of a collection, an index or its field`);
}
