/** Lists that arrive in pages. */

/** The first items of a list; all of them without a limit. */
export async function collect<T>(items: AsyncIterable<T>, limit = Number.POSITIVE_INFINITY): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) if (found.push(item) >= limit) break;
  return found;
}

interface Page<T> {
  readonly items: readonly T[];
  /** The cursor of the next page. */
  readonly next: string | undefined;
}

/** The items of all pages, each requested when the items before it are consumed. */
export async function* allPages<T>(
  readPage: (cursor: string | undefined) => Promise<Page<T>>,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  do {
    const { items, next } = await readPage(cursor);
    yield* items;
    cursor = next;
  } while (cursor !== undefined);
}
