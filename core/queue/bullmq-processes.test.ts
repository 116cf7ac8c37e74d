// Takes about 30 s
/** Several processes consume jobs of one queue, and end during a job. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { startConsumerProcess } from '../../test/kit/servers/redis-consumer.ts';
import { redisProblem, startRedis } from '../../test/kit/servers/redis.ts';
import { silentLog } from '../log/log.ts';
import { openBullQueue } from './bullmq.ts';
import { addMany, partsOf, soon, work } from './testing/parts.ts';

const problem = await redisProblem();

describe.skipIf(problem !== undefined)(`Consumers${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  test('share a queue: each job runs once, in one of two processes', async () => {
    await using redis = await startRedis();
    const options = { url: redis.url, prefix: randomUUID(), queue: 'tests', concurrency: 3 };
    await using one = startConsumerProcess(options);
    await using other = startConsumerProcess(options);
    await expect.poll(() => [one.lines[0], other.lines[0]], soon).toStrictEqual(['ready', 'ready']);
    await using queue = await openBullQueue({ ...options, log: silentLog() });
    // However long one of the processes waits for CPU time.
    const areBothUsed = () => Math.min(one.lines.length, other.lines.length) > 10;
    const { length } = await addMany(queue, 300, areBothUsed);
    const ended = () => [...one.lines, ...other.lines].filter((line) => line.startsWith('ended'));
    await expect.poll(() => ended().length, soon).toBeGreaterThanOrEqual(length);
    expect(ended()).toHaveLength(length);
    expect(new Set(ended()).size).toBe(length);
  });

  test('take over the job of a consumer that was killed, and of a consumer that closes', async () => {
    await using redis = await startRedis();
    const options = { url: redis.url, prefix: randomUUID(), queue: 'tests', concurrency: 1 };
    await using queue = await openBullQueue({ ...options, log: silentLog() });
    await queue.add('tests', work, { part: 1 }, { id: '1' });
    await using killed = startConsumerProcess({ ...options, runsUntilAborted: true });
    await expect.poll(() => killed.lines, soon).toContain('began 1');
    await using leaving = startConsumerProcess({ ...options, runsUntilAborted: true });
    await expect.poll(() => leaving.lines, soon).toContain('ready');
    killed.kill('SIGKILL');
    await killed.exited;
    await expect.poll(() => leaving.lines, soon).toContain('began 1');

    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    leaving.kill('SIGTERM');
    expect(await leaving.exited).toBe(0);
    await expect.poll(() => parts.has(1), soon).toBe(true);
  });

  test('close during an outage of Redis, and their jobs are found later', async () => {
    await using redis = await startRedis({ appendOnly: true });
    const options = { url: redis.url, prefix: randomUUID(), queue: 'tests', concurrency: 1 };
    await using queue = await openBullQueue({ ...options, log: silentLog() });
    await queue.add('tests', work, { part: 1 }, { id: '1' });
    await using leaving = startConsumerProcess({ ...options, runsUntilAborted: true });
    await expect.poll(() => leaving.lines, soon).toContain('began 1');
    await using idle = startConsumerProcess(options);
    await expect.poll(() => idle.lines, soon).toContain('ready');
    await redis.stop();
    // One consumer runs a job, one waits for jobs, and one has never reached Redis.
    await using unconnected = startConsumerProcess(options);
    await expect.poll(() => unconnected.lines, soon).toContain('ready');
    const all = [leaving, idle, unconnected];
    for (const each of all) each.kill('SIGTERM');
    expect(await Promise.all(all.map(({ exited }) => exited))).toStrictEqual([0, 0, 0]);
    await redis.start();
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await expect.poll(() => parts.has(1), soon).toBe(true);
  });
});
