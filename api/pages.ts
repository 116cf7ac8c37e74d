/** Lists, a page at a time, each from an index: a page costs the same however long its list is. */
import { z } from 'zod';
import type { PageQuery } from '../contract/pages.ts';
import type { Collection, Query, Store, StoredDocument } from '../core/store/store.ts';
import { ApiError } from '../model/api-error.ts';

/** A list: what a query finds, in the order of one field and, where that is equal, of IDs. */
export interface List<T extends StoredDocument, Index extends string> {
  readonly collection: Collection<T, Index>;
  /** Its `equals` name all fields of the index before `by`. */
  readonly query: Omit<Query<T, Index>, 'limit'>;
  readonly by: keyof T & string;
  /** What that field holds. */
  readonly type: 'text' | 'time';
}

export interface Page<T> {
  readonly items: T[];
  /** What an answer says of the next page. */
  readonly next: { readonly next_cursor?: string };
}

/** Finds a page of a list. Throws `BadRequest` for a cursor that no page gave. */
export async function findPage<T extends StoredDocument, Index extends string>(
  store: Store,
  list: List<T, Index>,
  { limit, cursor }: PageQuery,
): Promise<Page<T>> {
  const after = cursor === undefined ? undefined : readCursor(cursor, list.type);
  // One more than asked for shows whether there is a next page.
  const found = after ? await findAfter(store, list, after, limit + 1) : await findFirst(store, list, limit + 1);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, next: last && found.length > limit ? { next_cursor: cursorOf(last, list.by) } : {} };
}

/** The last document of a page. */
interface Position {
  readonly value: string | Date;
  readonly id: string;
}

async function findFirst<T extends StoredDocument, Index extends string>(
  store: Store,
  { collection, query }: List<T, Index>,
  limit: number,
): Promise<T[]> {
  return await store.find(collection, { ...query, limit });
}

async function findAfter<T extends StoredDocument, Index extends string>(
  store: Store,
  { collection, query, by }: List<T, Index>,
  { value, id }: Position,
  limit: number,
): Promise<T[]> {
  const bound = query.order === 'descending' ? 'before' : 'after';
  const equals = { ...query.equals, [by]: value } as NonNullable<Query<T, Index>['equals']>;
  const alike = await store.find(collection, { ...query, equals, range: { [bound]: id }, limit });
  if (alike.length === limit) return alike;
  // The position takes the place of the range's own bound on its side.
  const { from, to } = query.range ?? {};
  const other = bound === 'before' ? from !== undefined && { from } : to !== undefined && { to };
  const range = { ...other, [bound]: value };
  return [...alike, ...(await store.find(collection, { ...query, range, limit: limit - alike.length }))];
}

function cursorOf<T extends StoredDocument>(document: T, by: keyof T & string): string {
  // A date becomes its ISO text.
  return Buffer.from(JSON.stringify([document[by], document.id])).toString('base64url');
}

const positionTypes = {
  text: z.tuple([z.string(), z.string()]),
  time: z.tuple([z.iso.datetime({ precision: 3 }).transform((text) => new Date(text)), z.string()]),
};

function readCursor(cursor: string, type: 'text' | 'time'): Position {
  try {
    const [value, id] = positionTypes[type].parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    return { value, id };
  } catch (error) {
    throw new ApiError('BadRequest', 'cursor: Send the next_cursor of the page before', { cause: error });
  }
}
