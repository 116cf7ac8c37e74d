/** Connections to Redis as ioredis makes them, with this house's time limits. */
import { readFile } from 'node:fs/promises';
import { Cluster, Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import type { RedisTarget } from './redis-url.ts';

export type RedisClient = Redis | Cluster;

/**
 * What a connection is for. `ask`: short questions that fail soon rather than wait. `listen`: subscriptions. `work`:
 * commands that must get through, however long Redis is away.
 */
export type RedisUse = 'ask' | 'listen' | 'work';

/**
 * How long a connection may be silent while an answer is due before it counts as dead: a machine that vanished says nothing.
 * More than the ten seconds that BullMQ lets a connection block.
 */
const silenceTimeoutMs = { ask: 2_000, listen: 5_000, work: 15_000 } satisfies Record<RedisUse, number>;

/** Enough for TLS across a continent. */
const connectTimeoutMs = 3_000;

const firstRetryMs = 50;

/** What has come back should not wait long; one attempt in two seconds costs nothing. */
const longestRetryMs = 2_000;

/** A Redis that loads its data says how long that takes; asking each second finds it earlier. */
const loadingRetryMs = 1_000;

/** Makes a client, which connects at once and for ever again, until `closing` aborts. */
export async function makeRedisClient(target: RedisTarget, use: RedisUse, closing: AbortSignal): Promise<RedisClient> {
  const options = await commonOptions(target, use);
  // Once all is closing, a connection that is lost stays lost; copies that BullMQ makes share these functions.
  const retryStrategy = (times: number) => (closing.aborted ? null : retryAfterMs(times));
  const again = { enableOfflineQueue: use === 'work', retryStrategy };
  if (target.kind === 'cluster') return makeCluster(target, options, again);
  if (target.kind === 'sentinel')
    return new Redis({ ...options, ...again, ...sentinelOptions(target, options, again) });
  return new Redis({ ...options, ...again, ...(target.kind === 'socket' ? { path: target.path } : target.address) });
}

type CommonOptions = Omit<RedisOptions, 'replyMapping'>;

interface Again {
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
    // Who listens subscribes anew by itself; ioredis does it only within a cluster, where it picks the node.
    autoResubscribe: target.kind === 'cluster',
    ...(use === 'work'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false }),
  };
}

function sentinelOptions(
  target: RedisTarget & { kind: 'sentinel' },
  options: CommonOptions,
  { retryStrategy }: Again,
): CommonOptions {
  return {
    sentinels: [...target.sentinels],
    name: target.master,
    ...(target.sentinelPassword !== undefined && { sentinelPassword: target.sentinelPassword }),
    ...(options.tls && { enableTLSForSentinelMode: true, sentinelTLS: options.tls }),
    sentinelRetryStrategy: retryStrategy,
    // A master that was demoted refuses writes: ask the sentinels who it is now.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
  };
}

function makeCluster(
  target: RedisTarget & { kind: 'cluster' },
  options: CommonOptions,
  { enableOfflineQueue, retryStrategy }: Again,
): Cluster {
  return new Cluster([...target.nodes], {
    redisOptions: options,
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue,
    slotsRefreshTimeout: connectTimeoutMs,
    // Certificates name hosts, so with TLS names are not turned into addresses.
    ...(target.tls && { dnsLookup: (host, done) => done(null, host) }),
  });
}

/** Doubles, up to a limit, with some disorder so that a thousand processes do not come back at once. */
function retryAfterMs(times: number): number {
  const pauseMs = Math.min(firstRetryMs * 2 ** (times - 1), longestRetryMs);
  return Math.round(pauseMs * (0.8 + Math.random() * 0.4));
}
