/** Collects lists that the API returns in pages. */

/** Returns the first `limit` items of a list, by default all. */
export async function collect<T>(items: AsyncIterable<T>, limit = Number.POSITIVE_INFINITY): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) if (found.push(item) >= limit) break;
  return found;
}
