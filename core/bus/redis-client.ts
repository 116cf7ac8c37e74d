/** ioredis clients with Berth's time limits. */
import { readFile } from 'node:fs/promises';
import { Cluster, Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import type { RedisTarget } from './redis-url.ts';

export type RedisClient = Redis | Cluster;

/** The use of a connection. `request`: commands that fail soon. `subscribe`: subscriptions. `work`: commands that wait for Redis. */
export type RedisUse = 'request' | 'subscribe' | 'work';

/**
 * How long an answer may take before the connection counts as dead, because a machine that crashed closes no connection. Workers
 * need more than the ten seconds that BullMQ lets a connection block.
 */
const silenceTimeoutMs = { request: 2_000, subscribe: 5_000, work: 15_000 } satisfies Record<RedisUse, number>;

/** Enough for TLS across a continent. */
const connectTimeoutMs = 3_000;

const firstRetryMs = 50;

/** Short, so that a recovered Redis is found soon; one attempt in two seconds costs nothing. */
const longestRetryMs = 2_000;

/** Redis reports how long it takes to load its data; retrying each second finds it ready earlier. */
const loadingRetryMs = 1_000;

/** Creates a client, which connects at once and reconnects until `closing` aborts. */
export async function makeRedisClient(target: RedisTarget, use: RedisUse, closing: AbortSignal): Promise<RedisClient> {
  const options = await commonOptions(target, use);
  // No reconnects while closing. Copies of the client that BullMQ makes share this function.
  const retryStrategy = (times: number) => (closing.aborted ? null : retryAfterMs(times));
  const retries = { enableOfflineQueue: use === 'work', retryStrategy };
  if (target.kind === 'cluster') return makeCluster(target, options, retries);
  if (target.kind === 'sentinel')
    return new Redis({ ...options, ...retries, ...sentinelOptions(target, options, retries) });
  return new Redis({ ...options, ...retries, ...(target.kind === 'socket' ? { path: target.path } : target.address) });
}

type CommonOptions = Omit<RedisOptions, 'replyMapping'>;

interface Retries {
  readonly enableOfflineQueue: boolean;
  readonly retryStrategy: (times: number) => number | null;
}

async function commonOptions(target: RedisTarget, use: RedisUse): Promise<CommonOptions> {
  const { username, password, database, tls, caFile } = target;
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: caFile === undefined ? {} : { ca: await readFile(caFile) } }),
    db: database,
    connectTimeout: connectTimeoutMs,
    socketTimeout: silenceTimeoutMs[use],
    maxLoadingRetryTime: loadingRetryMs,
    // The bus restores its subscriptions itself, except in a cluster, where ioredis selects the node.
    autoResubscribe: target.kind === 'cluster',
    ...(use === 'work'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false }),
  };
}

function sentinelOptions(
  target: RedisTarget & { kind: 'sentinel' },
  options: CommonOptions,
  { retryStrategy }: Retries,
): CommonOptions {
  return {
    sentinels: [...target.sentinels],
    name: target.master,
    ...(target.sentinelPassword !== undefined && { sentinelPassword: target.sentinelPassword }),
    ...(options.tls && { enableTLSForSentinelMode: true, sentinelTLS: options.tls }),
    sentinelRetryStrategy: retryStrategy,
    // A demoted master rejects writes: reconnect through the sentinels to the current one.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
  };
}

function makeCluster(
  target: RedisTarget & { kind: 'cluster' },
  options: CommonOptions,
  { enableOfflineQueue, retryStrategy }: Retries,
): Cluster {
  return new Cluster([...target.nodes], {
    redisOptions: options,
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue,
    slotsRefreshTimeout: connectTimeoutMs,
    // Certificates contain host names, so with TLS names are not resolved to addresses.
    ...(target.tls && { dnsLookup: (host, done) => done(null, host) }),
  });
}

/** Exponential backoff with jitter, so that a thousand processes do not reconnect at once. */
function retryAfterMs(times: number): number {
  const pauseMs = Math.min(firstRetryMs * 2 ** (times - 1), longestRetryMs);
  return Math.round(pauseMs * (0.8 + Math.random() * 0.4));
}
