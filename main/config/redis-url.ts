import { z } from 'zod';
import type { ZodType } from 'zod';
import { RedisUrlError, parseRedisUrl } from '../../core/bus/redis-url.ts';

/** A Redis URL. Its error messages do not contain its secrets. */
export function redisUrl(): ZodType<string, string> {
  return z.string().superRefine((url, context) => {
    try {
      parseRedisUrl(url);
    } catch (error) {
      if (!(error instanceof RedisUrlError)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
    }
  });
}
