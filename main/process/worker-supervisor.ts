/** The worker of this node, which may come later than the process: its Docker Engine need not be there yet. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import { StoreError } from '../../core/store/store.ts';
import { EngineError, NodeNameError } from '../../worker/index.ts';
import type { Worker } from '../../worker/index.ts';

/** Whether backends can run in this process, and if not, why. */
export type WorkerState = { readonly running: true } | { readonly running: false; readonly reason: string };

/** A worker, or the attempts to open one. */
export interface WorkerSupervisor extends AsyncDisposable {
  /** How the first attempt went, for the caller to report. Later ones are logged, where their reason is another. */
  readonly atStart: WorkerState;
  /** Whether it is open. */
  readonly isOpen: boolean;
  /** Throws with what is wrong, in words for who operates the node, while no backend can be started here. */
  ping(): Promise<void>;
}

export interface WorkerSupervisorOptions {
  /** Opens the worker and what it needs, all of which `parts` closes. */
  readonly open: (parts: AsyncDisposableStack) => Promise<Worker>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Soon enough for somebody who has just started the engine. */
const tryAgainAfterMs = 5_000;

/**
 * Opens the worker. Where there is no usable Docker Engine, another machine has the node's name, or the store's disk is full, there
 * is none at first, and it is tried again until disposed. Throws whatever else the first attempt fails with.
 */
export async function superviseWorker(options: WorkerSupervisorOptions): Promise<WorkerSupervisor> {
  const opener = new Opener(options);
  const problem = await opener.tryOnce();
  if (problem) options.log.debug({ err: problem }, 'No worker on this node yet');
  const over = new AbortController();
  const trying = opener.goOnTrying(over.signal);
  return {
    atStart: problem ? { running: false, reason: problem.message } : { running: true },
    get isOpen() {
      return opener.isOpen;
    },
    ping: () => opener.ping(),
    [Symbol.asyncDispose]: async () => {
      over.abort();
      await trying;
      await opener[Symbol.asyncDispose]();
    },
  };
}

/** Whether an attempt failed with what ends without a restart of this process. */
function isPassing(error: unknown): error is Error {
  if (error instanceof StoreError) return error.isFull;
  return error instanceof EngineError || error instanceof NodeNameError;
}

class Opener implements AsyncDisposable {
  readonly #options: WorkerSupervisorOptions;
  #opened: { readonly worker: Worker; readonly parts: AsyncDisposable } | undefined;
  #problem: Error | undefined;

  constructor(options: WorkerSupervisorOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#opened !== undefined;
  }

  async ping(): Promise<void> {
    if (this.#problem) throw this.#problem;
    await this.#opened?.worker.ping();
  }

  /** Returns what whoever operates the node has to mend, if anything. */
  async tryOnce(): Promise<Error | undefined> {
    await using parts = new AsyncDisposableStack();
    try {
      const worker = await this.#options.open(parts);
      this.#opened = { worker, parts: parts.move() };
      this.#problem = undefined;
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#problem = error;
    }
    return this.#problem;
  }

  async goOnTrying(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!this.#opened && !signal.aborted) {
      await clock.sleep(tryAgainAfterMs, signal).catch(() => {});
      if (signal.aborted) return;
      const before = this.#problem?.message;
      await this.tryOnce().catch((error: unknown) => log.warn({ err: error }, 'Worker cannot be opened, trying again'));
      // The same words again and again say nothing new.
      const reason = this.#problem?.message;
      if (reason !== undefined && reason !== before) log.warn({ reason }, 'No worker on this node');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened?.parts[Symbol.asyncDispose]();
  }
}
