/** Plans queries: validates them and makes them explicit, so that drivers only translate plans and cannot disagree. */
import { StoreError } from './store.ts';
import type { IndexFields, IndexValue, PartialIndex, StoredDocument } from './store.ts';

/** A collection without the type of its documents. */
export interface AnyCollection {
  readonly name: string;
  readonly indexes: Readonly<Record<string, IndexFields | PartialIndex>>;
}

/** An index, of all documents if `omitsNull` is false. */
export interface AnyIndex {
  readonly fields: IndexFields;
  readonly omitsNull: boolean;
}

/** An index, however it was declared. */
export function indexOf(declared: IndexFields | PartialIndex): AnyIndex {
  return 'omitsNull' in declared ? declared : { fields: declared, omitsNull: false };
}

/** A query without the type of its documents. */
export interface AnyQuery {
  readonly index: string;
  readonly equals?: Readonly<Record<string, IndexValue | undefined>>;
  readonly range?: Readonly<Partial<Record<'from' | 'after' | 'to' | 'before', IndexValue>>>;
  readonly order?: 'ascending' | 'descending';
  readonly limit?: number;
}

/** The types of values that indexes distinguish. */
export type IndexType = 'number' | 'string' | 'boolean' | 'date';

export interface Bound {
  readonly value: Exclude<IndexValue, null>;
  readonly included: boolean;
}

/** Values of one type between two bounds, or all values but null. */
export interface PlannedRange {
  readonly field: string;
  readonly type: IndexType | 'any';
  readonly lower?: Bound;
  readonly upper?: Bound;
}

export interface QueryPlan {
  readonly equals: readonly { readonly field: string; readonly value: IndexValue }[];
  readonly range?: PlannedRange;
  /** The fields of the index that follow `equals`; `id` comes after them. */
  readonly orderBy: readonly string[];
  readonly descending: boolean;
  readonly limit?: number;
}

/** Plans a query. Throws `StoreError` `not-indexed` if its index cannot serve it. */
export function planQuery(collection: AnyCollection, query: AnyQuery): QueryPlan {
  const unsupported = (why: string) =>
    new StoreError('not-indexed', `Index "${query.index}" of "${collection.name}" cannot serve this query: ${why}`);
  const declared = collection.indexes[query.index];
  if (!declared) throw unsupported('there is no such index');
  const { fields, omitsNull } = indexOf(declared);
  const { limit } = query;
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 0)) {
    throw new RangeError(`A limit is a count of documents, not ${limit}`);
  }
  const equals = planEquals(query, fields, unsupported);
  const orderBy = fields.slice(equals.length);
  const range = planRange(query, orderBy[0] ?? 'id', unsupported);
  const hasFirst = equals[0] ? equals[0].value !== null : range !== undefined;
  if (omitsNull && !hasFirst)
    throw unsupported(`it has no document without "${fields[0]}", so name a value or a range`);
  return {
    equals,
    orderBy,
    descending: query.order === 'descending',
    ...(range && { range }),
    ...(limit !== undefined && { limit }),
  };
}

/** The type of a value. */
export function indexType(value: Exclude<IndexValue, null>): IndexType {
  return value instanceof Date ? 'date' : (typeof value as 'number' | 'string' | 'boolean');
}

/** The declaration of a collection. Throws a `TypeError` if there is none. */
export function declared(collections: ReadonlyMap<string, AnyCollection>, name: string): AnyCollection {
  const collection = collections.get(name);
  if (!collection) throw new TypeError(`Collection "${name}" was not declared when the store was opened`);
  return collection;
}

/** Throws a `TypeError` if a collection cannot store a document with this ID. */
export function assertStorable(collection: AnyCollection, id: string, document: StoredDocument): void {
  assertIndexable(collection, document);
  if (typeof document.id !== 'string' || document.id === '') throw new TypeError('A document needs an ID');
  if (document.id !== id) throw new TypeError(`A change must not turn document "${id}" into "${document.id}"`);
}

/** Throws a `TypeError` if an indexed field of a document has a value that cannot be indexed. */
function assertIndexable(collection: AnyCollection, document: object): void {
  for (const declared of Object.values(collection.indexes)) {
    for (const field of indexOf(declared).fields) {
      const value = (document as Record<string, unknown>)[field];
      if (typeof value !== 'object' || value === null || value instanceof Date) continue;
      throw new TypeError(`Field "${field}" of "${collection.name}" is indexed, so it cannot hold objects`);
    }
  }
}

type Unsupported = (why: string) => StoreError;

function planEquals(
  query: AnyQuery,
  fields: readonly string[],
  unsupported: Unsupported,
): { field: string; value: IndexValue }[] {
  const equals = query.equals ?? {};
  const count = Object.keys(equals).length;
  if (count > fields.length) throw unsupported('"equals" names more fields than it has');
  return fields.slice(0, count).map((field) => {
    const value = equals[field];
    if (value === undefined) throw unsupported(`"equals" must begin with "${field}"`);
    return { field, value: checked(value) };
  });
}

function planRange(query: AnyQuery, field: string, unsupported: Unsupported): PlannedRange | undefined {
  const { from, after, to, before } = query.range ?? {};
  if ([from, after, to, before].every((bound) => bound === undefined)) return undefined;
  if ((from !== undefined && after !== undefined) || (to !== undefined && before !== undefined)) {
    throw unsupported('"range" has two lower or two upper bounds');
  }
  if (from === null || to === null || before === null) {
    throw unsupported('a range never contains null, find null with "equals", and everything else with "after"');
  }
  const lower = boundOf(from, after);
  const upper = boundOf(to, before);
  const some = lower ?? upper;
  if (!some) return { field, type: 'any' };
  const type = indexType(some.value);
  if (upper && indexType(upper.value) !== type) throw unsupported('the bounds of "range" are of different types');
  return { field, type, ...(lower && { lower }), ...(upper && { upper }) };
}

function boundOf(included: IndexValue | undefined, excluded: IndexValue | undefined): Bound | undefined {
  const value = included ?? excluded;
  if (value === undefined || value === null) return undefined;
  return { value: checked(value), included: included !== undefined };
}

/** Throws a `RangeError` for a value that no document can have. */
function checked<Value extends IndexValue>(value: Value): Value {
  const isNumber = typeof value === 'number' ? Number.isFinite(value) : true;
  const isDate = value instanceof Date ? !Number.isNaN(value.getTime()) : true;
  if (!isNumber || !isDate) throw new RangeError(`Documents cannot be found by ${String(value)}`);
  return value;
}
