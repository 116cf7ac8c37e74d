/** Time from `queue.add` to the start of the job, compared with plain BullMQ on the same Redis in the same run. */
import { randomUUID } from 'node:crypto';
import { Queue as BullQueue, Worker as BullWorker } from 'bullmq';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { silentLog } from '../core/log/log.ts';
import { openBullQueue } from '../core/queue/bullmq.ts';
import { JobHandlers } from '../core/queue/queue.ts';
import { inTurn, median, pairsRow } from './measurements.ts';
import type { Row } from './measurements.ts';

/** Jobs of each side, in turn and one at a time, so that no job waits for another. */
const jobs = 500;

/** The first jobs open connections and load scripts. */
const warmUps = 50;

const kind = { name: 'bench', payload: z.strictObject({ at: z.number() }) };

/** Adds a job, and returns the milliseconds until it started. */
type Latency = () => Promise<number>;

/** Measures both in turn. */
export async function queueLatency(redisUrl: string): Promise<Row> {
  await using opened = new AsyncDisposableStack();
  const pairs = await inTurn({ warmUps, rounds: jobs }, await openOurs(redisUrl, opened), openBare(redisUrl, opened));
  const what = 'time from adding a job to its start, median: our queue / plain BullMQ';
  return pairsRow(what, pairs, { show: (times) => `${median(times).toFixed(2)} ms`, aim: '≤ 1.5 ×' });
}

async function openOurs(url: string, opened: AsyncDisposableStack): Promise<Latency> {
  const queue = opened.use(await openBullQueue({ url, prefix: `bench-${randomUUID()}`, log: silentLog() }));
  let begun = (_atMs: number) => {};
  const handlers = new JobHandlers().on(kind, async () => begun(performance.now()));
  opened.use(await queue.consume('bench', handlers, { concurrency: 1 }));
  return async () => {
    const addedAtMs = performance.now();
    const begins = new Promise<number>((resolve) => (begun = resolve));
    await queue.add('bench', kind, { at: addedAtMs }, { id: randomUUID() });
    return (await begins) - addedAtMs;
  };
}

function openBare(url: string, opened: AsyncDisposableStack): Latency {
  const prefix = `bench-${randomUUID()}`;
  const connect = () => {
    const connection = new Redis(url, { maxRetriesPerRequest: null });
    opened.defer(() => connection.disconnect());
    return connection;
  };
  let begun = (_atMs: number) => {};
  const queue = new BullQueue('bench', {
    connection: connect(),
    prefix,
    defaultJobOptions: { removeOnComplete: true },
  });
  opened.defer(async () => await queue.close());
  const worker = new BullWorker('bench', async () => begun(performance.now()), { connection: connect(), prefix });
  opened.defer(async () => await worker.close());
  return async () => {
    const addedAtMs = performance.now();
    const begins = new Promise<number>((resolve) => (begun = resolve));
    await queue.add('bench', { at: addedAtMs }, { jobId: randomUUID() });
    return (await begins) - addedAtMs;
  };
}
