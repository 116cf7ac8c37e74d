import { WaitingError, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import type { KeyedMutex } from '../async/keyed-mutex.ts';
import { settledWithin } from '../async/with-timeout.ts';
import { reasonOf } from '../bus/redis-link.ts';
import type { RedisLink } from '../bus/redis-link.ts';
import type { Log } from '../log/log.ts';
import type { ConsumerOptions, JobHandlers } from './queue.ts';
import { maxAttempts } from './queue.ts';

/** When jobs of dead consumers are assigned to others, and when failed jobs are retried. */
export interface BullTimings {
  /** How long a job waits after this number of failures. */
  readonly pauseAfterMs: (failures: number) => number;
  /** How long a consumer keeps a job without renewing its lock. */
  readonly lockMs: number;
  /** How often one of a queue's consumers looks for jobs without a lock. */
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
   * Serializes the runs of one job in this process. A job is dispatched again during its run if Redis was unavailable for longer
   * than a lock lasts, or has lost its data.
   */
  readonly runs: KeyedMutex;
}

/** Several renewals may be late before the lock expires. */
const renewalsPerLock = 4;

/** How long a closing consumer waits until Redis has the outcomes of its jobs. Otherwise other consumers run them again later. */
const closeTimeoutMs = 3_000;

/** The pause after a connection error. BullMQ's default of 15 s would delay jobs noticeably. */
const retryFetchMs = 1_000;

/** What BullMQ stores and publishes about a failure; the log has the details. */
const failedReason = 'The job failed, see the log of its consumer';

/** Runs jobs of one queue until disposed. */
export class BullConsumer implements AsyncDisposable {
  readonly #parts: BullConsumerParts;
  readonly #handlers: JobHandlers;
  readonly #closingSignal = new AbortController();
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
      // A job that crashes its process is a failed job.
      maxStalledCount: maxAttempts,
      runRetryDelay: retryFetchMs,
      settings: { backoffStrategy: (failures) => pauseAfterMs(failures) },
    });
    this.#worker.on('error', (error) => this.#onError(error));
    this.#worker.on('stalled', (job) =>
      parts.log.warn({ bullJob: job }, 'The consumer of a job died, the job runs again'),
    );
    this.#worker.on('failed', (job) => this.#onFailed(job));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    // Fetches no more jobs, and resolves when all outcomes are in Redis.
    const closed = this.#worker.close();
    this.#closingSignal.abort(new Error('The consumer is closing'));
    await Promise.allSettled(this.#runs);
    await settledWithin({ ms: closeTimeoutMs }, async () => await closed);
    // Without Redis, BullMQ waits for a connection that never closes, and its timer keeps the process alive.
    await this.#worker['lockManager'].close();
  }

  async #process(job: Job, token: string | undefined): Promise<void> {
    const id = job.deduplicationId ?? job.id ?? '';
    // Starts at once if possible: an `await` before it would let BullMQ fetch the next job first.
    const run = this.#parts.runs.run(`${this.#parts.queue} ${id}`, async () => await this.#run(job));
    this.#runs.add(run);
    try {
      await run;
    } catch (error) {
      if (this.#closingSignal.signal.aborted) await this.#requeue(job, token);
      else this.#onFailure(job, id, error);
    } finally {
      this.#runs.delete(run);
    }
  }

  async #run(job: Job): Promise<void> {
    const { signal } = this.#closingSignal;
    signal.throwIfAborted();
    await this.#handlers.run(job.name, job.data, signal);
  }

  /** Requeues an interrupted job at the front, without counting a failure. */
  async #requeue(job: Job, token: string | undefined): Promise<never> {
    // `moveToWait` wakes other consumers only for jobs without a priority.
    await job.changePriority({ priority: 0 });
    await job.moveToWait(token);
    throw new WaitingError();
  }

  #onFailure(job: Job, id: string, error: unknown): never {
    const { log, timings } = this.#parts;
    const failures = job.attemptsMade + 1;
    const fields = { job: job.name, id, failures, err: error };
    if (failures < maxAttempts) {
      log.warn({ ...fields, pauseMs: timings.pauseAfterMs(failures) }, 'Job failed, it will be retried');
    } else {
      log.error(fields, 'Job failed permanently');
    }
    throw new Error(failedReason);
  }

  /** BullMQ itself fails a job only if its consumers died too often. */
  #onFailed(job: Job | undefined): void {
    if (job?.deferredFailure === undefined) return;
    const fields = { job: job.name, id: job.deduplicationId, reason: job.deferredFailure };
    this.#parts.log.error(fields, 'Job failed permanently');
  }

  #onError(error: Error): void {
    // An outage is logged once by the connection; this would log it for each attempt of each consumer.
    const level = this.#parts.link.isReady ? 'warn' : 'debug';
    this.#parts.log[level]({ reason: reasonOf(error) }, 'A queue consumer failed to reach Redis');
  }
}
