import type { Clock } from '../clock/clock.ts';
import type { Log } from '../log/log.ts';
import { Consumer } from './in-process-consumer.ts';
import type { Outcome } from './in-process-consumer.ts';
import type { JobHandlers } from './queue.ts';
import { maxAttempts, pauseAfterMs } from './retries.ts';

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
