import { WaitingError, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import type { KeyedMutex } from '../async/keyed-mutex.ts';
import { settledWithin } from '../async/with-timeout.ts';
import { reasonOf } from '../bus/redis-link.ts';
import type { RedisLink } from '../bus/redis-link.ts';
import type { Log } from '../log/log.ts';
import type { ConsumerOptions, JobHandlers } from './queue.ts';
import { maxAttempts } from './queue.ts';

/** When the jobs of consumers that fell silent are given to others, and when failed ones are tried again. */
export interface BullTimings {
  /** How long a job waits after so many failures. */
  readonly pauseAfterMs: (failures: number) => number;
  /** How long a job belongs to its consumer without a sign of life. */
  readonly lockMs: number;
  /** How often the consumers of a queue look, one for all of them, for jobs without a lock. */
  readonly stalledCheckMs: number;
}

export interface BullConsumerParts {
  /** BullMQ's name of the queue. */
  readonly queue: string;
  readonly prefix: string;
  readonly link: RedisLink;
  readonly log: Log;
  readonly timings: BullTimings;
  /**
   * Keeps two runs of one job in this process apart. A job is handed out again while it still runs here when Redis was away
   * for longer than a lock lasts, or came back empty.
   */
  readonly runs: KeyedMutex;
}

/** A quarter of it: several renewals may be late before the lock ends. */
const renewalsPerLock = 4;

/** How long a consumer that leaves tries to tell Redis what became of its jobs; others find them all the same, later. */
const closeTimeoutMs = 3_000;

/** After an error of the connection; BullMQ's own 15 s would be noticed. */
const retryFetchMs = 1_000;

/** What BullMQ keeps of a failure, and tells all who follow its events; the log has the facts. */
const failedReason = 'The job failed, see the log of its consumer';

/** Takes jobs of one queue from Redis and runs them, until disposed. */
export class BullConsumer implements AsyncDisposable {
  readonly #parts: BullConsumerParts;
  readonly #handlers: JobHandlers;
  readonly #leaving = new AbortController();
  readonly #runs = new Set<Promise<void>>();
  readonly #worker: Worker;
  #closing: Promise<void> | undefined;

  constructor(parts: BullConsumerParts, handlers: JobHandlers, { concurrency }: ConsumerOptions) {
    this.#parts = parts;
    this.#handlers = handlers;
    const { lockMs, stalledCheckMs, pauseAfterMs } = parts.timings;
    this.#worker = new Worker(parts.queue, async (job, token) => await this.#process(job, token), {
      connection: parts.link.client,
      prefix: parts.prefix,
      concurrency,
      lockDuration: lockMs,
      lockRenewTime: lockMs / renewalsPerLock,
      stalledInterval: stalledCheckMs,
      // A job that takes its process down with it is a job that fails.
      maxStalledCount: maxAttempts,
      runRetryDelay: retryFetchMs,
      settings: { backoffStrategy: (failures) => pauseAfterMs(failures) },
    });
    this.#worker.on('error', (error) => this.#onError(error));
    this.#worker.on('stalled', (job) => parts.log.warn({ bullJob: job }, 'A job had lost its consumer, it runs again'));
    this.#worker.on('failed', (job) => this.#onFailed(job));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    // Takes nothing more from now on, and ends when all outcomes are in Redis.
    const closed = this.#worker.close();
    this.#leaving.abort(new Error('The consumer is closing'));
    await Promise.allSettled(this.#runs);
    await settledWithin({ ms: closeTimeoutMs }, async () => await closed);
    // Without Redis, BullMQ waits for the end of a connection that has none, and its timer would keep the process alive.
    await this.#worker['lockManager'].close();
  }

  async #process(job: Job, token: string | undefined): Promise<void> {
    const id = job.deduplicationId ?? job.id ?? '';
    // Begins at once if it can: anything awaited here would let BullMQ fetch the next job first.
    const run = this.#parts.runs.run(`${this.#parts.queue} ${id}`, async () => await this.#run(job));
    this.#runs.add(run);
    try {
      await run;
    } catch (error) {
      if (this.#leaving.signal.aborted) await this.#giveBack(job, token);
      else this.#onFailure(job, id, error);
    } finally {
      this.#runs.delete(run);
    }
  }

  async #run(job: Job): Promise<void> {
    const { signal } = this.#leaving;
    signal.throwIfAborted();
    await this.#handlers.run(job.name, job.data, signal);
  }

  /** Puts a job that was interrupted first in line, without a failure. */
  async #giveBack(job: Job, token: string | undefined): Promise<never> {
    // `moveToWait` wakes other consumers only for jobs without a priority.
    await job.changePriority({ priority: 0 });
    await job.moveToWait(token);
    throw new WaitingError();
  }

  #onFailure(job: Job, id: string, error: unknown): never {
    const { log, timings } = this.#parts;
    const failures = job.attemptsMade + 1;
    const facts = { job: job.name, id, failures, err: error };
    if (failures < maxAttempts) {
      log.warn({ ...facts, pauseMs: timings.pauseAfterMs(failures) }, 'Job failed, it will be tried again');
    } else {
      log.error(facts, 'Job failed for good');
    }
    throw new Error(failedReason);
  }

  /** BullMQ itself fails a job only if it was lost with its consumer too often. */
  #onFailed(job: Job | undefined): void {
    if (job?.deferredFailure === undefined) return;
    const facts = { job: job.name, id: job.deduplicationId, reason: job.deferredFailure };
    this.#parts.log.error(facts, 'Job failed for good');
  }

  #onError(error: Error): void {
    const facts = { reason: reasonOf(error) };
    // An outage has its own line in the log; this would be one for each attempt of each consumer.
    if (this.#parts.link.isReady) this.#parts.log.warn(facts, 'A consumer met an error of the queue');
    else this.#parts.log.debug(facts, 'A consumer met an error of the queue');
  }
}
