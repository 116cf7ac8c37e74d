/** Paged lists. Each page is read from an index, so that its cost does not depend on the length of the list. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import type { PageQuery } from '../contract/pages.ts';
import type { Collection, Query, Store, StoredDocument } from '../core/store/store.ts';
import { ApiError } from '../model/api-error.ts';

/** The results of a query, in the order of one field and then of IDs. */
export interface List<T extends StoredDocument, Index extends string> {
  readonly collection: Collection<T, Index>;
  /** Its `equals` names all fields of the index before `by`. */
  readonly query: Omit<Query<T, Index>, 'limit'>;
  readonly by: keyof T & string;
  /** The type of that field. */
  readonly type: keyof typeof positionTypes;
  /** Which of the results are in the list. Default: all. */
  readonly includes?: (item: T) => boolean;
}

/** The smallest batch that is read for a list that leaves out results. */
const filteredBatch = 200;

export interface Page<T> {
  readonly items: T[];
  /** The field of the response that names the next page. */
  readonly next: { readonly next_cursor?: string };
}

/** Reads a page of a list. Throws `BadRequest` for an invalid cursor. */
export async function findPage<T extends StoredDocument, Index extends string>(
  store: Store,
  list: List<T, Index>,
  { limit, cursor }: PageQuery,
): Promise<Page<T>> {
  const { includes } = list;
  // One more document than requested shows whether there is a next page.
  const wanted = limit + 1;
  const batch = includes ? Math.max(wanted, filteredBatch) : wanted;
  const found: T[] = [];
  for (let after = cursor; ; await nextTurn()) {
    const read = await findAfter(store, list, after, batch);
    found.push(...(includes ? read.filter(includes) : read));
    const lastRead = read.at(-1);
    if (!lastRead || read.length < batch || found.length >= wanted) break;
    after = cursorOf(lastRead, list.by);
  }
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, next: last && found.length > limit ? { next_cursor: cursorOf(last, list.by) } : {} };
}

async function findAfter<T extends StoredDocument, Index extends string>(
  store: Store,
  { collection, query, by, type }: List<T, Index>,
  cursor: string | undefined,
  limit: number,
): Promise<T[]> {
  if (cursor === undefined) return await store.find(collection, { ...query, limit });
  const [value, id] = readCursor(cursor, type);
  const bound = query.order === 'descending' ? 'before' : 'after';
  const equals = { ...query.equals, [by]: value } as NonNullable<Query<T, Index>['equals']>;
  const alike = await store.find(collection, { ...query, equals, range: { [bound]: id }, limit });
  if (alike.length === limit) return alike;
  // The position replaces the bound of the query's range on its side.
  const { from, to } = query.range ?? {};
  const other = bound === 'before' ? from !== undefined && { from } : to !== undefined && { to };
  const range = { ...other, [bound]: value };
  return [...alike, ...(await store.find(collection, { ...query, range, limit: limit - alike.length }))];
}

function cursorOf<T extends StoredDocument>(document: T, by: keyof T & string): string {
  // JSON writes a date as ISO text.
  return Buffer.from(JSON.stringify([document[by], document.id])).toString('base64url');
}

const positionTypes = {
  text: z.tuple([z.string(), z.string()]),
  time: z.tuple([z.iso.datetime({ precision: 3 }).transform((text) => new Date(text)), z.string()]),
};

/** The value of the field and the ID of the last document of the previous page. */
function readCursor(cursor: string, type: keyof typeof positionTypes): [string | Date, string] {
  try {
    return positionTypes[type].parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch (error) {
    throw new ApiError('BadRequest', 'cursor: Send the next_cursor of the previous page', { cause: error });
  }
}
