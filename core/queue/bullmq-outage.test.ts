/**
 * Jobs during outages of Redis. The tests await calls that must not wait for the end of an outage before they end it: if a call waited,
 * its test would not end.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { collectLog } from '../../test/kit/collect-log.ts';
import { redisProblem, startRedis } from '../../test/kit/servers/redis.ts';
import { silentLog } from '../log/log.ts';
import { openBullQueue } from './bullmq.ts';
import { JobHandlers, QueueError } from './queue.ts';
import { addMany, isAdded, isUnavailable, partsOf, soon, work } from './testing/parts.ts';

const problem = await redisProblem();

describe.skipIf(problem !== undefined)(`Jobs on Redis${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  test('survive a Redis that restarts while they are added and run', async () => {
    await using redis = await startRedis({ appendOnly: true });
    await using queue = await openBullQueue({ url: redis.url, log: silentLog() });
    const { parts, handlers } = partsOf(async () => await delay(5));
    await using _ = await queue.consume('tests', handlers, { concurrency: 3 });
    let restarts = 0;
    // However long a restart takes, and however many jobs are rejected meanwhile.
    const adding = addMany(queue, 300, () => restarts === 3);
    for (; restarts < 3; restarts += 1) {
      await expect.poll(() => parts.size, soon).toBeGreaterThan(restarts * 60 + 20);
      await redis.stop(restarts % 2 ? 'SIGTERM' : 'SIGKILL');
      await redis.start();
    }
    const added = await adding;
    await expect.poll(() => added.filter((part) => !parts.has(part)), soon).toStrictEqual([]);
    expect(added.length).toBeGreaterThan(100);
  });

  test('are rejected during an outage of Redis, and run again after Redis has lost its data', async () => {
    await using redis = await startRedis();
    const { log, lines } = collectLog();
    await using queue = await openBullQueue({ url: redis.url, log });
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: '1' });
    await expect.poll(() => [...parts], soon).toStrictEqual([1]);
    await redis.ask('SET', 'from-before', '1');
    await redis.stop();
    const rejected = await Promise.allSettled(
      Array.from({ length: 500 }, (_each, part) => queue.add('tests', work, { part }, { id: `${part}` })),
    );
    expect(rejected.every((each) => each.status === 'rejected' && isUnavailable(each.reason))).toBe(true);
    await expect(queue.add('tests', work, { part: 2 }, { id: '2' })).rejects.toThrow(QueueError);
    await expect(queue.ping()).rejects.toThrow(QueueError);
    await redis.start();
    expect(await redis.ask('EXISTS', 'from-before')).toBe('0');
    await expect.poll(async () => await isAdded(queue, 3), soon).toBe(true);
    await expect.poll(() => parts.has(3), soon).toBe(true);
    // One connection for requests and one for work.
    expect(lines.filter(({ msg }) => msg === 'Redis is unavailable')).toHaveLength(2);
    expect(lines.filter(({ msg }) => msg === 'Redis is available again')).toHaveLength(2);
    expect(lines).toHaveLength(4);
  });

  test('are lost when Redis loses its data, but block no other jobs', async () => {
    await using redis = await startRedis();
    await using queue = await openBullQueue({ url: redis.url, log: silentLog() });
    const gate = Promise.withResolvers<void>();
    const events: string[] = [];
    const handlers = new JobHandlers().on(work, async ({ part }) => {
      events.push(`began ${part}`);
      await gate.promise;
      await delay(20);
      events.push(`ended ${part}`);
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 3 });
    for (let part = 0; part < 10; part += 1) await queue.add('tests', work, { part }, { id: `${part}` });
    await expect.poll(() => events, soon).toStrictEqual(['began 0', 'began 1', 'began 2']);
    await redis.flush();
    await redis.ask('SCRIPT', 'FLUSH');
    // A job that Redis has lost although it still runs, and a new job.
    await queue.add('tests', work, { part: 0 }, { id: '0' });
    await queue.add('tests', work, { part: 20 }, { id: '20' });
    gate.resolve();
    await expect.poll(() => events.filter((event) => event === 'ended 0').length, soon).toBe(2);
    expect(events.filter((event) => event.endsWith(' 0'))).toStrictEqual(['began 0', 'ended 0', 'began 0', 'ended 0']);
    await expect.poll(() => events, soon).toContain('ended 20');
    await queue.add('tests', work, { part: 21 }, { id: '21' });
    await expect.poll(() => events, soon).toContain('ended 21');
    expect(events).not.toContain('began 5');
  });

  test('are found by consumers that started before Redis', async () => {
    await using redis = await startRedis();
    await redis.stop();
    await using queue = await openBullQueue({ url: redis.url, log: silentLog() });
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await expect(queue.add('tests', work, { part: 1 }, { id: '1' })).rejects.toThrow(QueueError);
    await redis.start();
    await expect.poll(async () => await isAdded(queue, 2), soon).toBe(true);
    await expect.poll(() => parts.has(2), soon).toBe(true);
  });

  test('are rejected while Redis hangs, and run when it answers again', async () => {
    await using redis = await startRedis();
    await using queue = await openBullQueue({ url: redis.url, log: silentLog() });
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: '1' });
    await redis.freeze();
    await expect(queue.add('tests', work, { part: 2 }, { id: '2' })).rejects.toThrow(QueueError);
    redis.thaw();
    await expect.poll(async () => await isAdded(queue, 3), soon).toBe(true);
    await expect.poll(() => parts.has(3), soon).toBe(true);
  });

  test('are rejected by a Redis without memory, and run when it has memory again, including the jobs that were running', async () => {
    await using redis = await startRedis({ lines: ['maxmemory 16mb', 'maxmemory-policy noeviction'] });
    const timings = { lockMs: 1_000, stalledCheckMs: 500 };
    await using queue = await openBullQueue({ url: redis.url, log: silentLog(), timings });
    const gate = Promise.withResolvers<void>();
    const { parts, handlers } = partsOf(async (part) => await (part === 1 ? gate.promise : undefined));
    await using _ = await queue.consume('tests', handlers, { concurrency: 2 });
    await queue.add('tests', work, { part: 1 }, { id: '1' });
    await expect.poll(() => parts.has(1), soon).toBe(true);
    await redis.ask('EVAL', "redis.call('SET', 'much', string.rep('x', 20000000))", '0');
    await expect(queue.add('tests', work, { part: 2 }, { id: '2' })).rejects.toThrow(/OOM/);
    expect(await isAdded(queue, 2)).toBe(false);
    gate.resolve();
    await redis.ask('DEL', 'much');
    await expect.poll(async () => await isAdded(queue, 3), soon).toBe(true);
    await expect.poll(() => parts.has(3), soon).toBe(true);
    // The job that ended when Redis had no memory for its outcome does not block the next job with its ID.
    await queue.add('tests', work, { part: 4 }, { id: '1' });
    await expect.poll(() => parts.has(4), soon).toBe(true);
  });

  test('never run twice at the same time when Redis is unavailable for longer than their lock lasts', async () => {
    await using redis = await startRedis({ appendOnly: true });
    const timings = { lockMs: 400, stalledCheckMs: 200 };
    await using queue = await openBullQueue({ url: redis.url, log: silentLog(), timings });
    let [running, most, ended] = [0, 0, 0];
    const gate = Promise.withResolvers<void>();
    const handlers = new JobHandlers().on(work, async () => {
      running += 1;
      most = Math.max(most, running);
      await gate.promise;
      running -= 1;
      ended += 1;
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 3 });
    await queue.add('tests', work, { part: 1 }, { id: '1' });
    await expect.poll(() => running, soon).toBe(1);
    await redis.stop();
    await delay(600);
    await redis.start();
    // The job's lock has expired, and the job was dispatched again.
    await expect.poll(async () => Number(await redis.ask('HGET', await jobKey(redis), 'ats')), soon).toBeGreaterThan(1);
    gate.resolve();
    await expect.poll(() => ended, soon).toBeGreaterThan(1);
    expect(most).toBe(1);
  });

  test('leave only the keys that a queue needs', async () => {
    await using redis = await startRedis();
    await using queue = await openBullQueue({ url: redis.url, log: silentLog(), timings: { pauseAfterMs: () => 1 } });
    let failing = 40;
    const { parts, handlers } = partsOf(async () => {
      failing -= 1;
      if (failing >= 0) throw new Error('Not yet');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 5 });
    const added = await addMany(queue, 1_000);
    await expect.poll(() => parts.size, soon).toBe(added.length);
    // BullMQ also has temporary keys.
    const lasting = async () =>
      (await redis.ask('KEYS', 'berth:*'))
        .split('\n')
        .filter((key) => !/:(?:marker|stalled|stalled-check|pc)$/.test(key));
    await expect
      .poll(async () => (await lasting()).sort(), soon)
      .toStrictEqual(['berth:{tests}:events', 'berth:{tests}:id', 'berth:{tests}:meta']);
    expect(Number(await redis.ask('XLEN', 'berth:{tests}:events'))).toBeLessThan(300);
  });
});

async function jobKey(redis: { ask(...command: string[]): Promise<string> }): Promise<string> {
  const keys = (await redis.ask('KEYS', 'berth:{tests}:????????-*')).split('\n');
  return keys.find((key) => !key.endsWith(':lock')) ?? '';
}
