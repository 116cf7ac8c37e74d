import type { Filter, Sort } from 'mongodb';
import type { MongoRecord } from './records.ts';
import { indexOf, planQuery } from '../query-plan.ts';
import type { AnyCollection, AnyIndex, AnyQuery, PlannedRange } from '../query-plan.ts';

/** A query for the MongoDB driver. */
export interface MongoQuery {
  readonly filter: Filter<MongoRecord>;
  readonly sort: Sort;
  /** The index that answers it, by its keys. */
  readonly hint: Readonly<Record<string, 1>>;
  readonly limit?: number;
  /** Absent: all fields. */
  readonly projection?: { readonly _id: 1 };
}

/**
 * Translates a query so that an index answers it in order, without sorting. MongoDB's order of types, and its comparisons within
 * one type, are those of the port. Throws `StoreError` `not-indexed`.
 */
export function mongoQuery(collection: AnyCollection, query: AnyQuery): MongoQuery {
  const plan = planQuery(collection, query);
  const filter: Record<string, unknown> = {};
  // `null` also matches absent fields.
  for (const { field, value } of plan.equals) filter[fieldPath(field)] = { $eq: value };
  if (plan.range) filter[fieldPath(plan.range.field)] = rangeFilter(plan.range);
  const direction = plan.descending ? -1 : 1;
  return {
    filter,
    sort: Object.fromEntries([...plan.orderBy.map(fieldPath), '_id'].map((path) => [path, direction])),
    hint: indexKeys(indexOf(collection.indexes[query.index] ?? []).fields),
    ...(plan.limit !== undefined && { limit: plan.limit }),
  };
}

/** The keys of an index. The ID comes last in each, so that order is always total. */
export function indexKeys(fields: readonly string[]): Record<string, 1> {
  return Object.fromEntries([...fields.map(fieldPath), '_id'].map((path) => [path, 1]));
}

/**
 * The filter of a partial index. A comparison with a value, and `$ne: null`, imply it for the server's planner. The index also
 * contains fields that are explicitly null, which changes no result.
 */
export function partialFilter({ fields: [first = 'id'], omitsNull }: AnyIndex): MongoPartialFilter | undefined {
  return omitsNull ? { [fieldPath(first)]: { $exists: true } } : undefined;
}

export type MongoPartialFilter = Readonly<Record<string, { readonly $exists: true }>>;

function rangeFilter({ type, lower, upper }: PlannedRange): Record<string, unknown> {
  if (type === 'any') return { $ne: null };
  return {
    ...(lower && { [lower.included ? '$gte' : '$gt']: lower.value }),
    ...(upper && { [upper.included ? '$lte' : '$lt']: upper.value }),
  };
}

function fieldPath(field: string): string {
  return field === 'id' ? '_id' : `document.${field}`;
}
