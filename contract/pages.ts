/** Lists come in pages: an answer that is not the last one names the cursor of the next. */
import { z } from 'zod';

/**
 * What a page holds at most, and without `limit`: few clients have more running backends or services, and those that do not
 * know of pages get all of them. To read so many keeps other requests waiting for some 20 ms.
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
    .meta({ description: 'At most this many' }),
  cursor: z.string().max(1024).optional().meta({ description: '`next_cursor` of the page before' }),
});

/** In the answer of every list. */
export const pageFields = {
  next_cursor: z.string().meta({ description: 'Where the next page begins; absent on the last one' }).optional(),
};

export type PageQuery = z.infer<typeof pageQuery>;
