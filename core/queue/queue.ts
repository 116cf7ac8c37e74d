/**
 * The port for jobs. A job is a notification: it contains only IDs, may run twice, and may be lost with the queue. The store holds
 * the work to do.
 */
import type { ZodType } from 'zod';
import { CodedError } from '../errors/coded-error.ts';

/** A kind of job: its name and payload. */
export interface JobKind<Payload> {
  readonly name: string;
  readonly payload: ZodType<Payload>;
}

export interface AddOptions {
  /**
   * Identifies the work; jobs with the same ID have the same kind and priority, and equivalent payloads. A waiting job is not added
   * a second time. A job that is added during its run runs again afterwards: the store may have changed after the run read it.
   */
  readonly id: string;
  /** `high` jobs run before waiting `normal` jobs. Default: `normal`. */
  readonly priority?: 'high' | 'normal';
}

/** Runs one job. A rejection is a failure: the job is retried a bounded number of times, after growing pauses. */
export type JobHandler<Payload> = (payload: Payload, signal: AbortSignal) => Promise<void>;

/** The handlers of a consumer, one for each kind of job in its queue. */
export class JobHandlers {
  readonly #byName = new Map<string, { kind: JobKind<unknown>; handler: JobHandler<unknown> }>();

  on<Payload>(kind: JobKind<Payload>, handler: JobHandler<Payload>): this {
    this.#byName.set(kind.name, { kind, handler: handler as JobHandler<unknown> });
    return this;
  }

  /** Parses the payload and runs the handler. Throws if this kind has no handler. */
  async run(name: string, payload: unknown, signal: AbortSignal): Promise<void> {
    const entry = this.#byName.get(name);
    if (!entry) throw new Error(`No handler for jobs named "${name}"`);
    await entry.handler(entry.kind.payload.parse(payload), signal);
  }
}

export interface ConsumerOptions {
  /** How many jobs run at a time. */
  readonly concurrency: number;
}

/** `unavailable`: the queue cannot be reached. If this happened during an `add`, the job may have been added. */
export type QueueErrorCode = 'unavailable';

export class QueueError extends CodedError<QueueErrorCode> {
  override readonly name = 'QueueError';
}

export interface Queue extends AsyncDisposable {
  /** Throws `QueueError` if the queue cannot be reached. */
  ping(): Promise<void>;

  /**
   * Adds a job to a queue; resolves when the queue has it. Rejects with `QueueError` within two seconds if the queue cannot be
   * reached: the notification is lost then, and periodic passes over the store find the work.
   */
  add<Payload>(queue: string, kind: JobKind<Payload>, payload: Payload, options: AddOptions): Promise<void>;

  /** Runs jobs of a queue until disposed. Disposing aborts the signal of running jobs and waits for them. */
  consume(queue: string, handlers: JobHandlers, options: ConsumerOptions): Promise<AsyncDisposable>;
}

/** How often a job runs before it is dropped. With the pauses below that takes 90 s; a Docker Engine restarts in less. */
export const maxAttempts = 8;

/** The pause after the first failure, doubled after each further failure: most second attempts succeed. */
const firstPauseMs = 1_000;

/** The longest pause: short, because the cause of the failures may have ended. */
const longestPauseMs = 30_000;

/** How long a job waits after this many failures. */
export function pauseAfterMs(failures: number): number {
  return Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs);
}
