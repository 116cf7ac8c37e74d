/**
 * The port to jobs. A job is a notification: it carries IDs only, may run twice, may be lost with the queue, and what it asks for
 * stands in the store all the same.
 */
import type { ZodType } from 'zod';

/** A kind of job: its name and what it carries. */
export interface JobKind<Payload> {
  readonly name: string;
  readonly payload: ZodType<Payload>;
}

export interface AddOptions {
  /**
   * Names what the job asks for; jobs with the same ID have the same kind and priority, and either payload will do. A job
   * that waits for its turn or its next try is not added a second time. A job that is added while it runs runs again
   * afterwards: the store may have changed after the run read it.
   */
  readonly id: string;
  /** `high` overtakes what waits. Default `normal`. */
  readonly priority?: 'high' | 'normal';
}

/** Does one job. A rejection is a failure: the job is tried again, after a growing pause, a bounded number of times. */
export type JobHandler<Payload> = (payload: Payload, signal: AbortSignal) => Promise<void>;

/** Handlers of one consumer, one for each kind of job that its queue may hold. */
export class JobHandlers {
  readonly #byName = new Map<string, { kind: JobKind<unknown>; handler: JobHandler<unknown> }>();

  on<Payload>(kind: JobKind<Payload>, handler: JobHandler<Payload>): this {
    this.#byName.set(kind.name, { kind, handler: handler as JobHandler<unknown> });
    return this;
  }

  /** Parses the payload and runs the handler. Throws if nobody handles this kind. */
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

/** `unavailable`: the queue cannot be reached. If it went away during an `add`, that may have happened all the same. */
export type QueueErrorCode = 'unavailable';

export class QueueError extends Error {
  override readonly name = 'QueueError';
  readonly code: QueueErrorCode;

  constructor(code: QueueErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export interface Queue extends AsyncDisposable {
  /** Throws `QueueError` when the queue cannot be reached. */
  ping(): Promise<void>;

  /**
   * Adds a job to a queue; resolves when the queue has it. Rejects with `QueueError` within a second or two if the queue is
   * away: the notification is lost then, and whoever reconciles with the store finds what it was about.
   */
  add<Payload>(queue: string, kind: JobKind<Payload>, payload: Payload, options: AddOptions): Promise<void>;

  /** Takes jobs from a queue until the consumer is disposed, which waits for the jobs it runs after aborting their signal. */
  consume(queue: string, handlers: JobHandlers, options: ConsumerOptions): Promise<AsyncDisposable>;
}

/** Runs of a job before it is given up. With the pauses below that is a minute and a half: a Docker Engine restarts in less. */
export const maxAttempts = 8;

/** The pause after the first failure, doubled after each further one: most of what fails once works a second later. */
const firstPauseMs = 1_000;

/** The longest pause: a job should not wait long for something that has come back. */
const longestPauseMs = 30_000;

/** How long a job waits after so many failures. */
export function pauseAfterMs(failures: number): number {
  return Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs);
}
