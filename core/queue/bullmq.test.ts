import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { collectLog } from '../../test/kit/collect-log.ts';
import { openTestRedis, redisProblem } from '../../test/kit/servers/redis.ts';
import { describeQueue } from '../../test/suites/queue-suite.ts';
import { silentLog } from '../log/log.ts';
import type { BullTimings } from './bullmq-consumer.ts';
import { openBullQueue } from './bullmq.ts';
import { JobHandlers, pauseAfterMs } from './queue.ts';
import type { Queue } from './queue.ts';
import { work } from './testing/parts.ts';

const problem = process.env['REDIS_URL'] ? undefined : await redisProblem();
const soon = { interval: 5, timeout: 60_000 };

describe.skipIf(problem !== undefined)(`BullMQ${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  let redis: Awaited<ReturnType<typeof openTestRedis>>;
  beforeAll(async () => void (redis = await openTestRedis()));
  afterAll(async () => await redis[Symbol.asyncDispose]());

  describeQueue('BullMQ', async () => {
    const queue = await open({ pauseAfterMs });
    return {
      queue,
      // The time of Redis cannot be controlled: the suite really waits.
      advance: async (ms) => await delay(ms),
      [Symbol.asyncDispose]: async () => await queue[Symbol.asyncDispose](),
    };
  });

  test('pauses after each failure, then drops the job and logs that', async () => {
    const pauses: number[] = [];
    const { log, lines } = collectLog();
    await using queue = await open({ pauseAfterMs: (failures) => (pauses.push(failures), 10) }, log);
    let tries = 0;
    const handlers = new JobHandlers().on(work, async () => {
      tries += 1;
      throw new Error('Never works');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await expect.poll(() => lines.at(-1)?.level, soon).toBe('error');
    expect(tries).toBe(8);
    // Called once for the log and once by BullMQ.
    expect(new Set(pauses)).toStrictEqual(new Set([1, 2, 3, 4, 5, 6, 7]));
    expect(lines.map(({ level }) => level)).toStrictEqual([...Array.from({ length: 7 }, () => 'warn'), 'error']);
    expect(lines.at(-1)).toMatchObject({ msg: 'Job failed permanently', id: 'a', failures: 8, queue: 'tests' });

    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await expect.poll(() => tries, soon).toBeGreaterThan(8);
  });

  test('holds a job once during its pause', async () => {
    await using queue = await open({ pauseAfterMs: () => 2_000 });
    const { parts, handlers } = partsOf(async () => {
      if (parts.length === 1) throw new Error('Not yet');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await queue.add('tests', work, { part: 2 }, { id: 'b' });
    await expect.poll(() => parts, soon).toStrictEqual([1, 2]);
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await expect.poll(() => parts, soon).toStrictEqual([1, 2, 1]);
    await queue.add('tests', work, { part: 3 }, { id: 'c' });
    await expect.poll(() => parts, soon).toStrictEqual([1, 2, 1, 3]);
  });

  test('retries a failed job, and runs it once more if it was added during the run that failed', async () => {
    await using queue = await open({ pauseAfterMs: () => 50 });
    const { parts, handlers } = partsOf(async () => {
      if (parts.length > 1) return;
      await queue.add('tests', work, { part: 1 }, { id: 'a' });
      throw new Error('Not yet');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await expect.poll(() => parts, soon).toStrictEqual([1, 1, 1]);
    await queue.add('tests', work, { part: 9 }, { id: 'b' });
    await expect.poll(() => parts, soon).toStrictEqual([1, 1, 1, 9]);
  });

  test('does not lose a job that is added during the last attempt', async () => {
    await using queue = await open({ pauseAfterMs: () => 1 });
    let tries = 0;
    const handlers = new JobHandlers().on(work, async () => {
      tries += 1;
      if (tries === 8) await queue.add('tests', work, { part: 2 }, { id: 'a' });
      if (tries <= 8) throw new Error('Not yet');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await expect.poll(() => tries, soon).toBe(9);
  });

  test('wakes another consumer at once for a job that was interrupted', async () => {
    // Without the notification, the job would wait until its lock expires, which is after the end of the test.
    await using queue = await open({ lockMs: 600_000, stalledCheckMs: 600_000 });
    const begun = Promise.withResolvers<void>();
    const interrupted = new JobHandlers().on(work, async (_, signal) => {
      begun.resolve();
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('Left'))));
    });
    const leaving = await queue.consume('tests', interrupted, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await begun.promise;
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 2 }, { id: 'b' });
    await expect.poll(() => parts, soon).toStrictEqual([2]);
    await leaving[Symbol.asyncDispose]();
    await expect.poll(() => parts, soon).toStrictEqual([2, 1]);
  });

  test('counts no failure when a job is interrupted, however often', async () => {
    const { log, lines } = collectLog();
    await using queue = await open({}, log);
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    for (let round = 0; round < 10; round += 1) {
      const begun = Promise.withResolvers<void>();
      const handlers = new JobHandlers().on(work, async (_, signal) => {
        begun.resolve();
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('Left'))));
      });
      await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
      await begun.promise;
    }
    const { parts, handlers } = partsOf(async () => {});
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await expect.poll(() => parts, soon).toStrictEqual([1]);
    expect(lines).toStrictEqual([]);
  });

  test('many callers add and run the same few jobs at once, and each add is followed by a run', async () => {
    await using queue = await open();
    // The work of a job is stored before the job is added.
    const [stored, seen] = [new Map<number, number>(), new Map<number, number>()];
    const { handlers } = partsOf(async (part) => {
      const round = stored.get(part) ?? -1;
      await delay(Math.random() * 3);
      seen.set(part, round);
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 4 });
    await using __ = await queue.consume('tests', handlers, { concurrency: 4 });
    // One after another for each ID, five IDs side by side.
    await Promise.all(
      Array.from({ length: 5 }, async (_, part) => {
        for (let round = 0; round < 100; round += 1) {
          stored.set(part, round);
          await queue.add('tests', work, { part }, { id: `${part}`, priority: part % 2 ? 'high' : 'normal' });
        }
      }),
    );
    await expect.poll(() => seen, soon).toStrictEqual(stored);
  });

  test('rejects names that would change the keys of other queues', async () => {
    await using queue = await open();
    await expect(queue.add('a:b', work, { part: 1 }, { id: 'a' })).rejects.toThrow(TypeError);
    await expect(queue.consume('{a}', new JobHandlers(), { concurrency: 1 })).rejects.toThrow(TypeError);
  });

  async function open(timings: Partial<BullTimings> = {}, log = silentLog()): Promise<Queue> {
    return await openBullQueue({ url: redis.url, prefix: randomUUID(), log, timings });
  }
});

function partsOf(onPart: (part: number) => Promise<void>) {
  const parts: number[] = [];
  const handlers = new JobHandlers().on(work, async ({ part }) => {
    parts.push(part);
    await onPart(part);
  });
  return { parts, handlers };
}
