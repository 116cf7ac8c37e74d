/** Scans documents in batches. Between two batches only a position is kept: no cursor and no transaction. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { indexOf, indexType } from './query-plan.ts';
import type { AnyCollection, IndexType } from './query-plan.ts';
import type { Collection, IndexValue, Query, Scan, Store, StoredDocument } from './store.ts';

/** Large enough that requests to the store cost little compared with documents, small enough that a batch delays nothing else. */
const defaultBatchSize = 500;

/** The smallest value of each type, in the order of types in an index. */
const smallest: readonly (readonly [IndexType, IndexValue])[] = [
  ['number', -Number.MAX_VALUE],
  ['string', ''],
  ['boolean', false],
  ['date', new Date(-8.64e15)],
];

/** Implements `Store.scan` for every driver by its `find`. */
export async function* scanInBatches<T extends StoredDocument, Index extends string>(
  store: Pick<Store, 'find'>,
  collection: Collection<T, Index>,
  { batchSize = defaultBatchSize, ...query }: Scan<T, Index>,
): AsyncGenerator<T, void, undefined> {
  let batch: T[] = await store.find(collection, { ...query, limit: batchSize });
  for (;;) {
    yield* batch;
    const last = batch.at(-1);
    if (!last || batch.length < batchSize) return;
    // An embedded store answers synchronously: waiting requests run first.
    await nextTurn();
    batch = [];
    for (const next of queriesAfter(collection, query, last)) {
      batch.push(...(await store.find(collection, { ...next, limit: batchSize - batch.length } as Query<T, Index>)));
      if (batch.length === batchSize) break;
    }
  }
}

/**
 * Queries that together find the documents after a document in the order of its index: first documents with the same values in all
 * fields and a later ID, then documents that agree in all fields but the last, and so on up to the fields of `equals`.
 */
function* queriesAfter(
  { indexes }: AnyCollection,
  query: Pick<Query<StoredDocument, string>, 'index' | 'equals' | 'range'>,
  last: StoredDocument,
) {
  const { index } = query;
  const { fields } = indexOf(indexes[index] ?? []);
  const values = { ...last } as Readonly<Record<string, IndexValue | undefined>>;
  const fixed = Object.keys(query.equals ?? {}).length;
  for (let count = fields.length; count >= fixed; count -= 1) {
    const equals = Object.fromEntries(fields.slice(0, count).map((field) => [field, values[field] ?? null]));
    const value = values[fields[count] ?? 'id'] ?? null;
    for (const range of rangesAfter(value, count === fixed ? query.range : undefined)) yield { index, equals, range };
  }
}

type Range = NonNullable<Query<StoredDocument, string>['range']>;

/** Ranges of the values after a value, within a range of the query. Each finds values of one type, or all values but null. */
function rangesAfter(value: IndexValue, range: Range = {}): Range[] {
  if (value === null) return [{ after: null }];
  const { to, before } = range;
  const rest = { after: value, ...(to !== undefined && { to }), ...(before !== undefined && { before }) };
  const isOfOneType = [range.from, range.after, to, before].some((bound) => bound !== undefined && bound !== null);
  if (isOfOneType) return [rest];
  const at = smallest.findIndex(([type]) => type === indexType(value));
  return [rest, ...smallest.slice(at + 1).map(([, from]) => ({ from }))];
}
