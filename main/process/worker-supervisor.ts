/** Opens the worker of this node, and retries until that succeeds: the Docker Engine may start later than this process. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import { StoreError } from '../../core/store/store.ts';
import { EngineError, NodeNameError } from '../../worker/index.ts';
import type { Worker } from '../../worker/index.ts';

/** Whether this process can run backends, and if not, why. */
export type WorkerState = { readonly running: true } | { readonly running: false; readonly reason: string };

export interface WorkerSupervisorOptions {
  /** Opens the worker and its dependencies; `parts` closes all of them. The signal ends waits when the supervisor is disposed. */
  readonly open: (parts: AsyncDisposableStack, signal: AbortSignal) => Promise<Worker>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Short enough for an operator who has just started the engine. */
const retryAfterMs = 5_000;

/**
 * Opens the worker. If no Docker Engine is usable, another machine uses the node's name, or the store's disk is full, retries until
 * that succeeds or the supervisor is disposed. Throws any other error of the first attempt.
 */
export async function superviseWorker(options: WorkerSupervisorOptions): Promise<WorkerSupervisor> {
  const supervisor = new WorkerSupervisor(options);
  await supervisor.begin();
  return supervisor;
}

/** Whether the cause of an error can end without a restart of this process. */
function isTemporary(error: unknown): error is Error {
  if (error instanceof StoreError) return error.isFull;
  return error instanceof EngineError || error instanceof NodeNameError;
}

/** A worker that is open, or that is still being opened. */
export class WorkerSupervisor implements AsyncDisposable {
  readonly #options: WorkerSupervisorOptions;
  readonly #closing = new AbortController();
  #retrying: Promise<void> = Promise.resolve();
  #atStart: WorkerState = { running: true };
  #opened: { readonly worker: Worker; readonly parts: AsyncDisposable } | undefined;
  #problem: Error | undefined;

  constructor(options: WorkerSupervisorOptions) {
    this.#options = options;
  }

  /** The result of the first attempt, for the caller to report. Later attempts are logged if their reason differs. */
  get atStart(): WorkerState {
    return this.#atStart;
  }

  /** Whether the worker is open. */
  get isOpen(): boolean {
    return this.#opened !== undefined;
  }

  /** Throws an error with a message for the operator while this node cannot start backends. */
  async ping(): Promise<void> {
    if (this.#problem) throw this.#problem;
    await this.#opened?.worker.ping();
  }

  /** Makes the first attempt, and starts retrying if it fails. Throws the errors of `superviseWorker`. */
  async begin(): Promise<void> {
    await this.#attempt();
    if (this.#problem) {
      this.#atStart = { running: false, reason: this.#problem.message };
      this.#options.log.debug({ err: this.#problem }, 'No worker on this node yet');
    }
    this.#retrying = this.#retry();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#retrying;
    await this.#opened?.parts[Symbol.asyncDispose]();
  }

  async #attempt(): Promise<void> {
    await using parts = new AsyncDisposableStack();
    try {
      const worker = await this.#options.open(parts, this.#closing.signal);
      this.#opened = { worker, parts: parts.move() };
      this.#problem = undefined;
    } catch (error) {
      if (!isTemporary(error)) throw error;
      this.#problem = error;
    }
  }

  async #retry(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#closing;
    while (!this.#opened && !signal.aborted) {
      await clock.sleep(retryAfterMs, signal).catch(() => {});
      if (signal.aborted) return;
      const before = this.#problem?.message;
      await this.#attempt().catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error }, 'Cannot open the worker, trying again');
      });
      // A repeated reason is not logged again.
      const reason = this.#problem?.message;
      if (reason !== undefined && reason !== before) log.warn({ reason }, 'No worker on this node');
    }
  }
}
