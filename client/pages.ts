/** Lists that arrive in pages. */

export interface ListOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long one attempt to get a page may take. Default: that of the client. */
  readonly timeoutMs?: number | undefined;
  /** The most items on a page: a small page arrives sooner, large pages need fewer requests. Default: that of the server. */
  readonly pageSize?: number | undefined;
}

interface Page<T> {
  readonly items: readonly T[];
  /** The cursor of the next page. */
  readonly next: string | undefined;
}

type PageQuery = { limit?: number | undefined; cursor?: string | undefined };

/** All items of a list. Each page is requested when the items before it are consumed. */
export async function* pagesOf<T>(
  { pageSize, signal, timeoutMs }: ListOptions,
  readPage: (query: PageQuery, options: Omit<ListOptions, 'pageSize'>) => Promise<Page<T>>,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  do {
    const { items, next } = await readPage({ limit: pageSize, cursor }, { signal, timeoutMs });
    yield* items;
    cursor = next;
  } while (cursor !== undefined);
}
