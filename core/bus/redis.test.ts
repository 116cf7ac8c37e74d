// Takes about 15 s
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { collectLog } from '../../test/kit/collect-log.ts';
import { startRedisCluster, startSentinelGroup } from '../../test/kit/servers/redis-groups.ts';
import { openTestRedis, redisProblem, startRedis, untilReached } from '../../test/kit/servers/redis.ts';
import { describeBus } from '../../test/suites/bus-suite.ts';
import { silentLog } from '../log/log.ts';
import type { Bus, Topic } from './bus.ts';
import { openRedisBus } from './redis.ts';

const problem = await redisProblem();
const hasRedis = problem === undefined || Boolean(process.env['REDIS_URL']);
const counted: Topic<{ count: number }> = { name: 'counted', message: z.strictObject({ count: z.int() }) };
const soon = { interval: 10, timeout: 60_000 };

describe.skipIf(!hasRedis)(`Redis${hasRedis ? '' : ` (skipped: ${problem})`}`, () => {
  let redis: Awaited<ReturnType<typeof openTestRedis>>;
  beforeAll(async () => void (redis = await openTestRedis()));
  afterAll(async () => await redis[Symbol.asyncDispose]());
  describeBus('Redis', async () => await openBus({ url: redis.url, prefix: randomUUID(), log: silentLog() }));
});

describe.skipIf(problem !== undefined)(
  `A dedicated Redis${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    test('publishes to other processes', async () => {
      await using redis = await startRedis();
      await using here = await openBus({ url: redis.url, log: silentLog() });
      await using there = await openBus({ url: redis.url, log: silentLog() });
      await using elsewhere = await openBus({ url: redis.url, prefix: 'other', log: silentLog() });
      const [received, notReceived] = [await listen(there), await listen(elsewhere)];
      await here.publish(counted, { count: 1 });
      await there.publish(counted, { count: 2 });
      await expect.poll(() => received, soon).toStrictEqual([1, 2]);
      expect(notReceived).toStrictEqual([]);
      expect((await redis.ask('PUBSUB', 'CHANNELS')).split('\n').sort()).toStrictEqual([
        'berth:bus:counted',
        'other:bus:counted',
      ]);
    });

    test('unsubscribes from a channel when its last subscriber leaves', async () => {
      await using redis = await startRedis();
      await using bus = await openBus({ url: redis.url, log: silentLog() });
      const first = await bus.subscribe(counted, () => {});
      const second = await bus.subscribe(counted, () => {});
      await first[Symbol.asyncDispose]();
      expect(await redis.ask('PUBSUB', 'CHANNELS')).toBe('berth:bus:counted');
      await second[Symbol.asyncDispose]();
      expect(await redis.ask('PUBSUB', 'CHANNELS')).toBe('');
    });

    test('drops malformed messages, and logs that', async () => {
      await using redis = await startRedis();
      const { log, lines } = collectLog();
      await using bus = await openBus({ url: redis.url, log });
      const received = await listen(bus);
      for (const text of ['{"count":', '{"count":"1"}', '{"count":1}']) {
        await redis.ask('PUBLISH', 'berth:bus:counted', text);
      }
      await expect.poll(() => received, soon).toStrictEqual([1]);
      expect(lines.map(({ msg }) => msg)).toStrictEqual([
        'Dropped a malformed bus message',
        'Dropped a malformed bus message',
      ]);
    });

    test('loses messages during an outage of Redis without waiting for its end, and restores its subscriptions afterwards', async () => {
      await using redis = await startRedis();
      const { log, lines } = collectLog();
      await using bus = await openBus({ url: redis.url, log });
      const received = await listen(bus);
      for (let round = 1; round <= 2; round += 1) {
        await redis.stop();
        await Promise.all(Array.from({ length: 1_000 }, () => bus.publish(counted, { count: 0 })));
        await expect(bus.ping()).rejects.toThrow(/^Redis (?:is unavailable|did not answer: the connection is lost)/);
        const late: number[] = [];
        await bus.subscribe(counted, ({ count }) => void late.push(count));
        await redis.start();
        received.length = 0;
        await expect.poll(async () => await publishAndSee(bus, received, round), soon).toBe(true);
        expect(late).toContain(round);
        await bus.ping();
      }
      expect(lines.filter(({ msg }) => msg === 'Bus messages are being lost')).toHaveLength(2);
      // One connection publishes, one subscribes.
      expect(lines.filter(({ msg }) => msg === 'Redis is unavailable')).toHaveLength(4);
      expect(lines.filter(({ msg }) => msg === 'Redis is available again')).toHaveLength(4);
    });

    test('opens during an outage of Redis, and works after it', async () => {
      await using redis = await startRedis();
      await redis.stop();
      await using bus = await openRedisBus({ url: redis.url, log: silentLog() });
      const received = await listen(bus);
      await redis.start();
      await expect.poll(async () => await publishAndSee(bus, received, 7), soon).toBe(true);
    });

    test('does not make callers wait for a Redis that hangs', async () => {
      await using redis = await startRedis();
      await using bus = await openBus({ url: redis.url, log: silentLog() });
      const received = await listen(bus);
      await redis.freeze();
      // Both end while Redis is still frozen.
      await bus.publish(counted, { count: 0 });
      await expect(bus.ping()).rejects.toThrow('Redis');
      redis.thaw();
      await expect.poll(async () => await publishAndSee(bus, received, 5), soon).toBe(true);
    });

    test('uses TLS with a password, and logs no password', async () => {
      await using redis = await startRedis({ tls: true, password: 's3cret/@' });
      await using bus = await openBus({ url: redis.url, log: silentLog() });
      const received = await listen(bus);
      await bus.publish(counted, { count: 1 });
      await expect.poll(() => received, soon).toStrictEqual([1]);

      const wrong = collectLog();
      await using refused = await openRedisBus({ url: redis.url.replace('s3cret', 'wr0ng'), log: wrong.log });
      const reason = async () =>
        await refused.ping().then(
          () => undefined,
          (error: Error) => error.message,
        );
      await expect.poll(reason, soon).toMatch(/WRONGPASS/);
      expect(JSON.stringify(wrong.lines)).toMatch(/WRONGPASS/);
      expect(JSON.stringify(wrong.lines)).not.toMatch(/wr0ng/);

      const distrusting = collectLog();
      await using _ = await openRedisBus({ url: redis.url.replace(/\?.*/, ''), log: distrusting.log });
      await expect.poll(() => JSON.stringify(distrusting.lines), soon).toMatch(/certificate/);
    });

    test('follows a sentinel to the next master', async () => {
      await using group = await startSentinelGroup({ password: 's3cret' });
      await using bus = await openBus({ url: group.url, log: silentLog() });
      const received = await listen(bus);
      await bus.publish(counted, { count: 1 });
      await expect.poll(() => received, soon).toStrictEqual([1]);
      await group.master.stop('SIGKILL');
      await expect.poll(async () => await publishAndSee(bus, received, 2), soon).toBe(true);
    });

    test('publishes to all nodes of a cluster', async () => {
      await using cluster = await startRedisCluster();
      await using here = await openBus({ url: cluster.url, log: silentLog() });
      await using there = await openBus({ url: cluster.url.replace(/\/[^/,]+,/, '/'), log: silentLog() });
      const received = await listen(there);
      for (let count = 0; count < 100; count += 1) await here.publish(counted, { count });
      await expect.poll(() => received, soon).toStrictEqual(Array.from({ length: 100 }, (_, count) => count));
    });
  },
);

/** Opens a bus that has reached Redis. */
async function openBus(options: Parameters<typeof openRedisBus>[0]): Promise<Bus> {
  const bus = await openRedisBus(options);
  await untilReached(bus);
  return bus;
}

async function listen(bus: Bus): Promise<number[]> {
  const counts: number[] = [];
  await bus.subscribe(counted, ({ count }) => void counts.push(count));
  return counts;
}

async function publishAndSee(bus: Bus, received: readonly number[], count: number): Promise<boolean> {
  await bus.publish(counted, { count });
  return received.includes(count);
}
