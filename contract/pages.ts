/** Pages of lists: every page except the last one contains the cursor of the next page. */
import { z } from 'zod';
import type { ZodType } from 'zod';

/**
 * The maximum number of items on a page, and the default of `limit`. Few clients have more running backends or services, so clients that do not
 * support pages usually get all of them. Reading so many items delays other requests by about 20 ms.
 */
const maxPageItems = 1000;

/** The query of every list. */
export const pageQuery = z.strictObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(maxPageItems)
    .default(maxPageItems)
    .meta({ description: 'The maximum number of items on the page' }),
  cursor: z.string().max(1024).optional().meta({ description: '`next_cursor` of the previous page' }),
});

/** In the answer of every list. */
const pageFields = {
  next_cursor: z.string().meta({ description: 'The start of the next page; absent on the last page' }).optional(),
};

/** The query and the answer of a list: a page has its items in the given field. */
export function listOf(items: Readonly<Record<string, ZodType>>) {
  const fields = Object.fromEntries(Object.entries(items).map(([name, item]) => [name, z.array(item)]));
  return { query: pageQuery, answer: z.strictObject({ ...fields, ...pageFields }) };
}

export type PageQuery = z.infer<typeof pageQuery>;
