/** Jobs in Redis with BullMQ: any number of processes add and consume them. */
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
  /** Prefix of all keys. Default: `berth`. */
  readonly prefix?: string;
  readonly log: Log;
  /** Replaces times of production in tests. */
  readonly timings?: Partial<BullTimings>;
}

/**
 * A killed consumer is detected after 10 to 15 s: soon compared with the minutes in which a backend must be ready, and late enough
 * that a restart of Redis or a lack of CPU does not look like a dead consumer. If it does, the job runs twice, which is allowed.
 */
const defaultTimings: BullTimings = { pauseAfterMs, lockMs: 10_000, stalledCheckMs: 5_000 };

/** BullMQ publishes events on a stream that Berth does not read. The last events help operators. */
const keptEvents = 100;

/** BullMQ runs jobs without a priority first, then jobs with one, each group in order. */
const bullPriority = { high: 0, normal: 1 };

/** Opens a queue on Redis; resolves also while Redis is unavailable. */
export async function openBullQueue({ url, prefix = 'berth', log, timings }: BullQueueOptions): Promise<Queue> {
  await using opening = new AsyncDisposableStack();
  const requests = opening.use(await openRedisLink(url, 'request', log));
  const working = opening.use(await openRedisLink(url, 'work', log));
  opening.move();
  return new BullMqQueue({ requests, working, prefix, log, timings: { ...defaultTimings, ...timings } });
}

class BullMqQueue implements Queue {
  readonly #requests: RedisLink;
  readonly #working: RedisLink;
  readonly #prefix: string;
  readonly #log: Log;
  readonly #timings: BullTimings;
  readonly #queues = new Map<string, BullQueue>();
  readonly #consumers = new Set<BullConsumer>();
  readonly #runs = new KeyedMutex();
  #closed = false;

  constructor(parts: { requests: RedisLink; working: RedisLink; prefix: string; log: Log; timings: BullTimings }) {
    this.#requests = parts.requests;
    this.#working = parts.working;
    this.#prefix = parts.prefix;
    this.#log = parts.log;
    this.#timings = parts.timings;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    await this.#request(async () => await this.#requests.client.ping());
  }

  async add<Payload>(queue: string, kind: JobKind<Payload>, payload: Payload, options: AddOptions): Promise<void> {
    this.#assertOpen();
    const { id, priority = 'normal' } = options;
    const data = kind.payload.parse(payload);
    const bullQueue = this.#queue(queue);
    await this.#request(
      async () =>
        await bullQueue.add(kind.name, data, {
          // BullMQ would restart at 1 in a Redis that lost its data, while jobs with those numbers may be running.
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
    await Promise.all([this.#requests[Symbol.asyncDispose](), this.#working[Symbol.asyncDispose]()]);
    await Promise.all(Array.from(this.#queues.values(), (queue) => queue.close()));
  }

  async #request<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    try {
      return await this.#requests.request(send);
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
      connection: this.#requests.client,
      prefix: this.#prefix,
      // Otherwise an outage at this moment would leave a queue that always fails.
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
    // The connection logs its own errors, and `add` throws its own.
    queue.on('error', () => {});
    return queue;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The queue is closed');
  }
}

/** All keys of a queue contain its name in braces, so that a Redis Cluster stores them on one node. */
function bullName(queue: string): string {
  if (!/^[^:{}]+$/.test(queue)) throw new TypeError(`"${queue}" cannot name a queue: leave out colons and braces`);
  return `{${queue}}`;
}
