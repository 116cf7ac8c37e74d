/** The driver of each port, and its address. */
import { z } from 'zod';
import type { ZodType } from 'zod';
import { RedisUrlError, parseRedisUrl } from '../../core/bus/redis-url.ts';
import { oneOf, optionalText, text, whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

export const driverSettings = {
  store: {
    variable: 'BERTH_STORE',
    schema: oneOf(['sqlite', 'mongodb'], 'sqlite'),
    help: 'Where documents are stored. `sqlite`: a file in the data folder, for one process. `mongodb`: for any number of processes.',
  },
  blobs: {
    variable: 'BERTH_BLOBS',
    schema: oneOf(['files', 'gridfs'], 'files'),
    help: 'Where the bytes of images are stored. `files`: in the data folder, for one registry. `gridfs`: in MongoDB, for any number of registries.',
  },
  blobCacheMib: {
    variable: 'BERTH_BLOB_CACHE_MIB',
    schema: whole({ min: 0, max: Number.MAX_SAFE_INTEGER / 1024 ** 2, or: 4096 }),
    help: 'How much disk space all registries of a data folder may use together for copies of layers that are pulled often, with `BERTH_BLOBS=gridfs`. `0`: none.',
  },
  diskReserveMib: {
    variable: 'BERTH_DISK_RESERVE_MIB',
    schema: whole({ min: 0, max: Number.MAX_SAFE_INTEGER / 1024 ** 2, or: 256 }),
    help: 'How much space on the disk with the data folder is kept free for the store. While less is free, pushes are refused, see [deployment](deployment.md#a-full-disk). `0`: none.',
  },
  queue: {
    variable: 'BERTH_QUEUE',
    schema: oneOf(['process', 'bullmq'], 'process'),
    help: 'How the API sends jobs to workers. `process`: in the same process. `bullmq`: through Redis.',
  },
  bus: {
    variable: 'BERTH_BUS',
    schema: oneOf(['process', 'redis'], 'process'),
    help: 'How components notify each other of changes. `process`: in the same process. `redis`: through Redis.',
  },
  mongodbUrl: {
    variable: 'BERTH_MONGODB_URL',
    schema: optionalText(z.string().regex(/^mongodb(?:\+srv)?:\/\//, 'Use a mongodb:// or mongodb+srv:// URL')),
    help: 'URL of MongoDB, for `BERTH_STORE=mongodb` and `BERTH_BLOBS=gridfs`: a standalone server, a replica set or a sharded cluster.',
  },
  mongodbDatabase: {
    variable: 'BERTH_MONGODB_DATABASE',
    schema: text('berth', z.string().regex(/^[\w-]{1,38}$/, 'Use up to 38 letters, digits, hyphens and underscores')),
    help: 'The database in MongoDB. Platforms that share a server need different databases.',
  },
  redisPrefix: {
    variable: 'BERTH_REDIS_PREFIX',
    schema: text('berth', z.string().regex(/^[\w-]{1,38}$/, 'Use up to 38 letters, digits, hyphens and underscores')),
    help: 'The prefix of all names in Redis. Platforms that share a server need different prefixes.',
  },
  redisUrl: {
    variable: 'BERTH_REDIS_URL',
    schema: optionalText(redisUrl()),
    help: 'URL of Redis, for `BERTH_QUEUE=bullmq` and `BERTH_BUS=redis`: `redis://…`, `rediss://…` (TLS), sentinels, a cluster or a socket, see [deployment](deployment.md#your-own-redis).',
  },
} satisfies Record<string, Setting<unknown>>;

/** A Redis URL. Its error messages do not contain its secrets. */
function redisUrl(): ZodType<string, string> {
  return z.string().superRefine((url, context) => {
    try {
      parseRedisUrl(url);
    } catch (error) {
      if (!(error instanceof RedisUrlError)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
    }
  });
}
