/** Jobs within this process. */
import type { Clock } from '../clock/clock.ts';
import type { Log } from '../log/log.ts';
import { maxAttempts, pauseAfterMs } from './queue.ts';
import type { AddOptions, ConsumerOptions, JobHandlers, JobKind, Queue } from './queue.ts';

/** Opens a queue that lives and ends with this process. */
export function openInProcessQueue(options: { clock: Clock; log: Log }): Queue {
  return new InProcessQueue(options.clock, options.log);
}

class InProcessQueue implements Queue {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #queues = new Map<string, JobQueue>();
  #closed = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async add<Payload>(queue: string, kind: JobKind<Payload>, payload: Payload, options: AddOptions): Promise<void> {
    this.#assertOpen();
    const { id, priority = 'normal' } = options;
    this.#queue(queue).add(id, { name: kind.name, payload: kind.payload.parse(payload), priority });
  }

  async consume(queue: string, handlers: JobHandlers, options: ConsumerOptions): Promise<AsyncDisposable> {
    this.#assertOpen();
    return this.#queue(queue).consume(handlers, options.concurrency);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#queues.values(), (queue) => queue[Symbol.asyncDispose]()));
  }

  #queue(name: string): JobQueue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = new JobQueue(this.#clock, this.#log.child({ queue: name }))));
    return queue;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The queue is closed');
  }
}

/** A job as it is added to a queue. */
export interface AddedJob {
  readonly name: string;
  readonly payload: unknown;
  readonly priority: 'high' | 'normal';
}

interface Job extends AddedJob {
  readonly id: string;
  isRunning: boolean;
  /** How many runs have failed. */
  failures: number;
  /** The job that was added under the same ID during the run. */
  next?: AddedJob;
}

/** The jobs of one queue and its consumers. */
class JobQueue implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #jobs = new Map<string, Job>();
  readonly #waiting = { high: new Set<Job>(), normal: new Set<Job>() };
  readonly #pauses = new Set<Disposable>();
  readonly #consumers = new Set<Consumer>();
  #closed = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  add(id: string, added: AddedJob): void {
    const job = this.#jobs.get(id);
    if (job?.isRunning) job.next = added;
    else if (!job) this.#enqueue({ id, ...added, isRunning: false, failures: 0 });
  }

  consume(handlers: JobHandlers, concurrency: number): AsyncDisposable {
    const consumer = new Consumer(handlers, concurrency);
    this.#consumers.add(consumer);
    this.#dispatch();
    return {
      [Symbol.asyncDispose]: async () => {
        this.#consumers.delete(consumer);
        await consumer[Symbol.asyncDispose]();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const pause of this.#pauses) pause[Symbol.dispose]();
    this.#pauses.clear();
    const consumers = [...this.#consumers];
    this.#consumers.clear();
    await Promise.all(consumers.map((consumer) => consumer[Symbol.asyncDispose]()));
  }

  #enqueue(job: Job): void {
    job.isRunning = false;
    this.#jobs.set(job.id, job);
    this.#waiting[job.priority].add(job);
    this.#dispatch();
  }

  #dispatch(): void {
    for (const consumer of this.#consumers) {
      while (consumer.hasCapacity) {
        const [job] = this.#waiting.high.size > 0 ? this.#waiting.high : this.#waiting.normal;
        if (!job) return;
        this.#waiting[job.priority].delete(job);
        job.isRunning = true;
        void consumer.run(job.name, job.payload).then((outcome) => this.#onEnd(job, outcome));
      }
    }
  }

  #onEnd(job: Job, outcome: Outcome): void {
    this.#jobs.delete(job.id);
    if (this.#closed) return;
    const added = job.next;
    const next: Job = { ...job, ...added };
    delete next.next;
    if (outcome.kind === 'interrupted') this.#enqueue(next);
    else if (outcome.kind === 'failed') this.#onFailure(next, outcome.error, added !== undefined);
    else if (added) this.#enqueue({ ...next, failures: 0 });
    this.#dispatch();
  }

  #onFailure(job: Job, error: unknown, wasAddedAgain: boolean): void {
    job.failures += 1;
    const fields = { job: job.name, id: job.id, failures: job.failures, err: error };
    if (job.failures >= maxAttempts && !wasAddedAgain) {
      this.#log.error(fields, 'Job failed permanently');
      return;
    }
    const pauseMs = pauseAfterMs(job.failures);
    this.#log.warn({ ...fields, pauseMs }, 'Job failed, it will be retried');
    job.isRunning = false;
    this.#jobs.set(job.id, job);
    const pause = this.#clock.after(pauseMs, () => {
      this.#pauses.delete(pause);
      this.#enqueue(job);
    });
    this.#pauses.add(pause);
  }
}

/** How a run ended. `interrupted`: its consumer was closing. */
type Outcome = { kind: 'done' } | { kind: 'interrupted' } | { kind: 'failed'; error: unknown };

/** Runs jobs, a bounded number at a time, until disposed. */
class Consumer implements AsyncDisposable {
  readonly #handlers: JobHandlers;
  readonly #concurrency: number;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<Outcome>>();

  constructor(handlers: JobHandlers, concurrency: number) {
    this.#handlers = handlers;
    this.#concurrency = concurrency;
  }

  get hasCapacity(): boolean {
    return this.#running.size < this.#concurrency && !this.#abort.signal.aborted;
  }

  async run(name: string, payload: unknown): Promise<Outcome> {
    const run = this.#attempt(name, payload);
    this.#running.add(run);
    const outcome = await run;
    this.#running.delete(run);
    return outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort(new Error('The consumer is closing'));
    await Promise.all(this.#running);
  }

  async #attempt(name: string, payload: unknown): Promise<Outcome> {
    const { signal } = this.#abort;
    try {
      // The handler starts on its own stack, not within the call that added the job.
      await Promise.resolve();
      await this.#handlers.run(name, payload, signal);
      return { kind: 'done' };
    } catch (error) {
      return signal.aborted ? { kind: 'interrupted' } : { kind: 'failed', error };
    }
  }
}
