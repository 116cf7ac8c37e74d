/** Groups of Redis servers: with a sentinel, or as a cluster. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from '../../../setup/command.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { makeCertificate } from '../machine/certificate.ts';
import { startRedis } from './redis.ts';
import type { RedisServer } from './redis.ts';

/** A failover, and the creation of a cluster, take a few seconds. */
const settleTimeoutMs = 90_000;

export interface SentinelGroup extends AsyncDisposable {
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  readonly sentinel: RedisServer;
}

export interface SentinelGroupOptions {
  readonly password: string;
  /** The password of the sentinel itself. Default: none. */
  readonly sentinelPassword?: string;
  readonly tls?: boolean;
}

/** Starts a master, its replica, and a sentinel that promotes the replica when the master is silent for a second. */
export async function startSentinelGroup(options: SentinelGroupOptions): Promise<SentinelGroup> {
  const { password, sentinelPassword } = options;
  await using opening = new AsyncDisposableStack();
  const shared = options.tls ? { tls: { folder: await certificateFolder(opening) } } : {};
  const common = { ...shared, password };
  // Starts replication at once, without waiting for more replicas.
  const master = opening.use(await startRedis({ ...common, lines: ['repl-diskless-sync-delay 0'] }));
  const replica = opening.use(await startRedis({ ...common, lines: [`replicaof 127.0.0.1 ${master.port}`] }));
  await until(async () => (await replica.ask('INFO', 'replication')).includes('master_link_status:up'));
  const sentinel = opening.use(
    await startRedis({
      ...shared,
      ...(sentinelPassword !== undefined && { password: sentinelPassword }),
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
  const query = new URLSearchParams({
    ...(sentinelPassword !== undefined && { sentinel_password: sentinelPassword }),
    ...(shared.tls && { ca: join(shared.tls.folder, 'ca.pem') }),
  });
  const scheme = options.tls ? 'rediss+sentinel' : 'redis+sentinel';
  const url = `${scheme}://:${password}@127.0.0.1:${sentinel.port}/group?${query.toString()}`;
  return { url, master, replica, sentinel, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

export interface RedisClusterGroup extends AsyncDisposable {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
}

/** Starts a Redis Cluster of three masters. */
export async function startRedisCluster(
  options: { readonly password?: string; readonly tls?: boolean } = {},
): Promise<RedisClusterGroup> {
  const { password } = options;
  await using opening = new AsyncDisposableStack();
  const shared = options.tls ? { tls: { folder: await certificateFolder(opening) } } : {};
  const common = { ...shared, ...(password !== undefined && { password }) };
  const nodes: RedisServer[] = [];
  const lines = ['cluster-enabled yes', 'cluster-config-file nodes.conf', 'cluster-node-timeout 2000'];
  if (options.tls) lines.push('tls-cluster yes');
  for (let node = 0; node < 3; node += 1) nodes.push(opening.use(await startRedis({ ...common, lines })));
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  const authority = shared.tls && join(shared.tls.folder, 'ca.pem');
  const flags = authority === undefined ? [] : ['--tls', '--cacert', authority];
  const env = password === undefined ? {} : { REDISCLI_AUTH: password };
  await runCommand('redis-cli', [...flags, '--cluster', 'create', ...addresses, '--cluster-yes'], { env });
  for (const node of nodes) await until(async () => (await node.ask('CLUSTER', 'INFO')).includes('cluster_state:ok'));
  const owned = opening.move();
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
  const query = authority === undefined ? '' : `?ca=${authority}`;
  const scheme = options.tls ? 'rediss+cluster' : 'redis+cluster';
  return {
    url: `${scheme}://${secret}${addresses.join(',')}${query}`,
    nodes,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Creates a folder with the certificate of all servers of a group. */
async function certificateFolder(opening: AsyncDisposableStack): Promise<string> {
  const { path: folder } = opening.use(await temporaryFolder());
  await makeCertificate(folder);
  return folder;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + settleTimeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('The Redis servers did not become ready');
    await delay(50);
  }
}
