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
  readonly #lines = new Map<string, Line>();
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
    this.#line(queue).add(id, { name: kind.name, payload: kind.payload.parse(payload), priority });
  }

  async consume(queue: string, handlers: JobHandlers, options: ConsumerOptions): Promise<AsyncDisposable> {
    this.#assertOpen();
    return this.#line(queue).consume(handlers, options.concurrency);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#lines.values(), (line) => line[Symbol.asyncDispose]()));
  }

  #line(queue: string): Line {
    let line = this.#lines.get(queue);
    if (!line) this.#lines.set(queue, (line = new Line(this.#clock, this.#log.child({ queue }))));
    return line;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The queue is closed');
  }
}

/** What is added to a queue. */
export interface AddedJob {
  readonly name: string;
  readonly payload: unknown;
  readonly priority: 'high' | 'normal';
}

interface Job extends AddedJob {
  readonly id: string;
  isRunning: boolean;
  /** Runs that failed. */
  failures: number;
  /** What was added under the same ID while this one ran. */
  next?: AddedJob;
}

/** The jobs of one queue and its consumers. */
export class Line implements AsyncDisposable {
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
    else if (!job) this.#enter({ id, ...added, isRunning: false, failures: 0 });
  }

  consume(handlers: JobHandlers, concurrency: number): AsyncDisposable {
    const consumer = new Consumer(handlers, concurrency);
    this.#consumers.add(consumer);
    this.#handOut();
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

  #enter(job: Job): void {
    job.isRunning = false;
    this.#jobs.set(job.id, job);
    this.#waiting[job.priority].add(job);
    this.#handOut();
  }

  #handOut(): void {
    for (const consumer of this.#consumers) {
      while (consumer.hasRoom) {
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
    const again = job.next;
    const next: Job = { ...job, ...again };
    delete next.next;
    if (outcome.kind === 'interrupted') this.#enter(next);
    else if (outcome.kind === 'failed') this.#onFailure(next, outcome.error, again !== undefined);
    else if (again) this.#enter({ ...next, failures: 0 });
    this.#handOut();
  }

  #onFailure(job: Job, error: unknown, wasAddedAgain: boolean): void {
    job.failures += 1;
    const facts = { job: job.name, id: job.id, failures: job.failures, err: error };
    if (job.failures >= maxAttempts && !wasAddedAgain) {
      this.#log.error(facts, 'Job failed for good');
      return;
    }
    const pauseMs = pauseAfterMs(job.failures);
    this.#log.warn({ ...facts, pauseMs }, 'Job failed, it will be tried again');
    job.isRunning = false;
    this.#jobs.set(job.id, job);
    const pause = this.#clock.after(pauseMs, () => {
      this.#pauses.delete(pause);
      this.#enter(job);
    });
    this.#pauses.add(pause);
  }
}

/** How a run ended. `interrupted`: its consumer was leaving. */
export type Outcome = { kind: 'done' } | { kind: 'interrupted' } | { kind: 'failed'; error: unknown };

/** Runs jobs, a bounded number at a time, until disposed. */
export class Consumer implements AsyncDisposable {
  readonly #handlers: JobHandlers;
  readonly #concurrency: number;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<Outcome>>();

  constructor(handlers: JobHandlers, concurrency: number) {
    this.#handlers = handlers;
    this.#concurrency = concurrency;
  }

  get hasRoom(): boolean {
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
      // A handler begins on its own stack, not within the call that added the job.
      await Promise.resolve();
      await this.#handlers.run(name, payload, signal);
      return { kind: 'done' };
    } catch (error) {
      return signal.aborted ? { kind: 'interrupted' } : { kind: 'failed', error };
    }
  }
}
