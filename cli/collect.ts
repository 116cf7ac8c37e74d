/** Lists that arrive in pages. */

/** The first items of a list; all of them without a limit. */
export async function collect<T>(items: AsyncIterable<T>, limit = Number.POSITIVE_INFINITY): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) if (found.push(item) >= limit) break;
  return found;
}
