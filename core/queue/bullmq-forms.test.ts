// Takes about 10 s
/** The forms in which operators run Redis. */
import { describe, expect, test } from 'vitest';
import { startRedisCluster, startSentinelGroup } from '../../test/kit/servers/redis-groups.ts';
import { redisProblem, startRedis } from '../../test/kit/servers/redis.ts';
import { silentLog } from '../log/log.ts';
import { openBullQueue } from './bullmq.ts';
import { JobHandlers, QueueError } from './queue.ts';
import type { Queue } from './queue.ts';
import { isAdded, partsOf, soon, work } from './testing/parts.ts';

const problem = await redisProblem();

describe.skipIf(problem !== undefined)(`A queue${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  test('works on a Unix socket, and over TLS with a password', async () => {
    for (const options of [{ socket: true }, { tls: true, password: 's3cret/@' }]) {
      await using redis = await startRedis(options);
      await using queue = await openBullQueue({ url: redis.url, log: silentLog() });
      expect(await isRun(queue, 1)).toBe(true);
    }
  });

  test('works on a cluster, and its queues are distributed over the nodes', async () => {
    await using cluster = await startRedisCluster();
    await using queue = await openBullQueue({ url: cluster.url, log: silentLog() });
    for (let part = 0; part < 8; part += 1) expect(await isRun(queue, part, `tests-${part}`)).toBe(true);
    const sizes = await Promise.all(cluster.nodes.map(async (node) => Number(await node.ask('DBSIZE'))));
    expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(1);
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    for (const node of cluster.nodes) await node.stop('SIGKILL');
    await expect(queue.add('tests', work, { part: 3 }, { id: '3' })).rejects.toThrow(QueueError);
    for (const node of cluster.nodes) await node.start();
    await expect.poll(async () => await isAdded(queue, 4), soon).toBe(true);
    await expect.poll(() => parts.has(4), soon).toBe(true);
  });

  test('follows a sentinel to the next master', async () => {
    await using group = await startSentinelGroup({ password: 's3cret' });
    await using queue = await openBullQueue({ url: group.url, log: silentLog() });
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: '1' });
    await expect.poll(() => parts.has(1), soon).toBe(true);
    await group.master.stop('SIGKILL');
    await expect.poll(async () => await isAdded(queue, 2), soon).toBe(true);
    await expect.poll(() => parts.has(2), soon).toBe(true);
  });
});

async function isRun(queue: Queue, part: number, name = 'tests'): Promise<boolean> {
  const ran = Promise.withResolvers<boolean>();
  const handlers = new JobHandlers().on(work, async (payload) => ran.resolve(payload.part === part));
  await using _ = await queue.consume(name, handlers, { concurrency: 1 });
  await queue.add(name, work, { part }, { id: `${part}` });
  return await ran.promise;
}
