/** Jobs in a Redis, by BullMQ: any number of processes add and take them. */
import { randomUUID } from 'node:crypto';
import { Queue as BullQueue } from 'bullmq';
import { KeyedMutex } from '../async/keyed-mutex.ts';
import { RedisUnavailableError, openRedisLink } from '../bus/redis-link.ts';
import type { RedisLink } from '../bus/redis-link.ts';
import type { Log } from '../log/log.ts';
import { BullConsumer } from './bullmq-consumer.ts';
import type { BullTimings } from './bullmq-consumer.ts';
import { QueueError, maxAttempts, pauseAfterMs } from './queue.ts';
import type { AddOptions, ConsumerOptions, JobHandlers, JobKind, Queue } from './queue.ts';

export interface BullQueueOptions {
  /** See `core/bus/redis-url.ts`. */
  readonly url: string;
  /** Leads all keys. Default `berth`. */
  readonly prefix?: string;
  readonly log: Log;
  /** Other times than the ones that hold in production. */
  readonly timings?: Partial<BullTimings>;
}

/**
 * A consumer that was killed is missed after 10 s, at the latest 15 s: soon against the minutes in which a backend must be
 * ready, and long enough that a Redis that restarts, or a process that is short of CPU, does not look like a dead consumer.
 * Should it look so, the job runs twice, which jobs can stand.
 */
const defaultTimings: BullTimings = { pauseAfterMs, lockMs: 10_000, stalledCheckMs: 5_000 };

/** BullMQ tells all that happens on a stream that nobody reads here; enough to see what went on last. */
const keptEvents = 100;

/** BullMQ runs jobs without a priority first, then those with one; within each group, first come, first served. */
const bullPriority = { high: 0, normal: 1 };

/** Opens a queue on a Redis; resolves also while that is away. */
export async function openBullQueue({ url, prefix = 'berth', log, timings }: BullQueueOptions): Promise<Queue> {
  await using opening = new AsyncDisposableStack();
  const asking = opening.use(await openRedisLink(url, 'ask', log));
  const working = opening.use(await openRedisLink(url, 'work', log));
  opening.move();
  return new BullMqQueue({ asking, working, prefix, log, timings: { ...defaultTimings, ...timings } });
}

class BullMqQueue implements Queue {
  readonly #asking: RedisLink;
  readonly #working: RedisLink;
  readonly #prefix: string;
  readonly #log: Log;
  readonly #timings: BullTimings;
  readonly #queues = new Map<string, BullQueue>();
  readonly #consumers = new Set<BullConsumer>();
  readonly #runs = new KeyedMutex();
  #closed = false;

  constructor(parts: { asking: RedisLink; working: RedisLink; prefix: string; log: Log; timings: BullTimings }) {
    this.#asking = parts.asking;
    this.#working = parts.working;
    this.#prefix = parts.prefix;
    this.#log = parts.log;
    this.#timings = parts.timings;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    await this.#ask(async () => await this.#asking.client.ping());
  }

  async add<Payload>(queue: string, kind: JobKind<Payload>, payload: Payload, options: AddOptions): Promise<void> {
    this.#assertOpen();
    const { id, priority = 'normal' } = options;
    const data = kind.payload.parse(payload);
    const bullQueue = this.#queue(queue);
    await this.#ask(
      async () =>
        await bullQueue.add(kind.name, data, {
          // BullMQ would count from 1 again in a Redis that came back empty, while jobs with those numbers still run.
          jobId: randomUUID(),
          deduplication: { id, keepLastIfActive: true },
          priority: bullPriority[priority],
        }),
    );
  }

  async consume(queue: string, handlers: JobHandlers, options: ConsumerOptions): Promise<AsyncDisposable> {
    this.#assertOpen();
    const log = this.#log.child({ queue });
    const parts = { queue: bullName(queue), prefix: this.#prefix, link: this.#working, timings: this.#timings };
    const consumer = new BullConsumer({ ...parts, log, runs: this.#runs }, handlers, options);
    this.#consumers.add(consumer);
    return {
      [Symbol.asyncDispose]: async () => {
        await consumer[Symbol.asyncDispose]();
        this.#consumers.delete(consumer);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#consumers, (consumer) => consumer[Symbol.asyncDispose]()));
    await Promise.all([this.#asking[Symbol.asyncDispose](), this.#working[Symbol.asyncDispose]()]);
    await Promise.all(Array.from(this.#queues.values(), (queue) => queue.close()));
  }

  async #ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    try {
      return await this.#asking.ask(question);
    } catch (error) {
      throw error instanceof RedisUnavailableError ? new QueueError('unavailable', error.message) : error;
    }
  }

  #queue(name: string): BullQueue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = this.#openQueue(name)));
    return queue;
  }

  #openQueue(name: string): BullQueue {
    const queue = new BullQueue(bullName(name), {
      connection: this.#asking.client,
      prefix: this.#prefix,
      // Otherwise an outage at this moment would leave an object that fails for ever.
      skipWaitingForReady: true,
      skipVersionCheck: true,
      streams: { events: { maxLen: keptEvents } },
      defaultJobOptions: {
        attempts: maxAttempts,
        backoff: { type: 'custom' },
        removeOnComplete: true,
        removeOnFail: true,
        stackTraceLimit: 0,
      },
    });
    // The connection says by itself what is wrong with it, and `add` what is wrong with that.
    queue.on('error', () => {});
    return queue;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The queue is closed');
  }
}

/** All keys of a queue carry its name in braces, and so live on one node of a Redis Cluster, and queues on different ones. */
function bullName(queue: string): string {
  if (!/^[^:{}]+$/.test(queue)) throw new TypeError(`"${queue}" cannot name a queue: leave out colons and braces`);
  return `{${queue}}`;
}
