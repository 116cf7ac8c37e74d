/** Several Redis servers that act as one: watched by a sentinel, or as a cluster. */
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from '../../setup/command.ts';
import { startRedis } from './redis.ts';
import type { RedisServer, RedisServerOptions } from './redis.ts';

/** Failing over, and putting a cluster together, take a few seconds. */
const settleTimeoutMs = 45_000;

export interface SentinelGroup extends AsyncDisposable {
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  readonly sentinel: RedisServer;
}

/** Starts a master, its replica, and one sentinel that makes the replica master when the master is silent for a second. */
export async function startSentinelGroup(password: string): Promise<SentinelGroup> {
  await using opening = new AsyncDisposableStack();
  // Its replica need not wait for others to come.
  const master = opening.use(await startRedis({ password, lines: ['repl-diskless-sync-delay 0'] }));
  const replica = opening.use(await startRedis({ password, lines: [`replicaof 127.0.0.1 ${master.port}`] }));
  await until(async () => (await replica.ask('INFO', 'replication')).includes('master_link_status:up'));
  const sentinel = opening.use(
    await startRedis({
      sentinel: true,
      lines: [
        `sentinel monitor group 127.0.0.1 ${master.port} 1`,
        `sentinel auth-pass group ${password}`,
        'sentinel down-after-milliseconds group 1000',
        'sentinel failover-timeout group 3000',
      ],
    }),
  );
  await until(async () => (await sentinel.ask('SENTINEL', 'replicas', 'group')).includes(`${replica.port}`));
  const owned = opening.move();
  const url = `redis+sentinel://:${password}@127.0.0.1:${sentinel.port}/group`;
  return { url, master, replica, sentinel, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

export interface RedisClusterGroup extends AsyncDisposable {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
}

/** Starts a Redis Cluster of three masters. */
export async function startRedisCluster(options: RedisServerOptions = {}): Promise<RedisClusterGroup> {
  await using opening = new AsyncDisposableStack();
  const nodes: RedisServer[] = [];
  const lines = ['cluster-enabled yes', 'cluster-config-file nodes.conf', 'cluster-node-timeout 2000'];
  for (let node = 0; node < 3; node += 1) nodes.push(opening.use(await startRedis({ ...options, lines })));
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  await runCommand('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes']);
  for (const node of nodes) await until(async () => (await node.ask('CLUSTER', 'INFO')).includes('cluster_state:ok'));
  const owned = opening.move();
  return { url: `redis+cluster://${addresses.join(',')}`, nodes, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + settleTimeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('The Redis servers do not settle');
    await delay(50);
  }
}
