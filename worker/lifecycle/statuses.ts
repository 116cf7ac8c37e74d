/** Writes the documents of the worker's backends: in order, and repeatedly while the store does not answer. */
import type { Bus } from '../../core/bus/bus.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import { StoreError } from '../../core/store/store.ts';
import type { Store } from '../../core/store/store.ts';
import type { Backend } from '../../model/backend.ts';
import { changeBackend } from '../../model/change-backend.ts';
import type { BackendChange } from '../../model/change-backend.ts';

export interface StatusesDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
}

interface Pending {
  readonly change: BackendChange;
  readonly resolve: (backend: Backend | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The pauses between two attempts while the store does not answer. */
const firstPauseMs = 100;
const longestPauseMs = 3_000;

/**
 * Writes the changes of one backend in the order in which they were requested. Changes that are requested during a write share
 * the next write, so a slow store never delays a container. While the store does not answer, each write is retried. A change that
 * throws is dropped, and the others of its write are written.
 */
export class Statuses {
  readonly #deps: StatusesDeps;
  readonly #id: string;
  readonly #closing: AbortSignal;
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;

  /** @param closing - aborts when the worker closes: unwritten changes are left to the next worker */
  constructor(deps: StatusesDeps, id: string, closing: AbortSignal) {
    this.#deps = deps;
    this.#id = id;
    this.#closing = closing;
  }

  /**
   * Resolves when the change is durable, with the document after it (`undefined` if there is none). Rejects if the worker closes
   * first, and with the error that the change throws, which is also logged. The result need not be awaited.
   */
  write(change: BackendChange): Promise<Backend | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Backend | undefined>();
    promise.catch(() => {});
    this.#pending.push({ change, resolve, reject });
    this.#writing ??= this.#writeAll();
    return promise;
  }

  /** Resolves when every change that was requested so far is written or dropped. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      // If a shared write fails, each change is written alone: only those that throw are dropped.
      if (!(await this.#writeBatch(batch))) for (const each of batch) await this.#writeOne(each);
    }
    this.#writing = undefined;
  }

  /** Returns whether all changes were written. */
  async #writeBatch(batch: readonly Pending[]): Promise<boolean> {
    if (batch.length === 1) return false;
    try {
      const written = await this.#retryWrite((backend) => batch.reduce((now, { change }) => change(now), backend));
      for (const { resolve } of batch) resolve(written);
      return true;
    } catch {
      return false;
    }
  }

  async #writeOne({ change, resolve, reject }: Pending): Promise<void> {
    try {
      resolve(await this.#retryWrite(change));
    } catch (error) {
      if (!this.#closing.aborted) this.#deps.log.error({ err: error, backend: this.#id }, 'Cannot change a backend');
      reject(error);
    }
  }

  /** Writes as soon as the store answers. Throws the error of the change, and when the worker closes. */
  async #retryWrite(change: BackendChange): Promise<Backend | undefined> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        const { backend } = await changeBackend(this.#deps, this.#id, change);
        return backend;
      } catch (error) {
        this.#closing.throwIfAborted();
        if (!(error instanceof StoreError && error.code === 'unavailable')) throw error;
        this.#deps.log.warn({ err: error, backend: this.#id }, 'Cannot write the status, trying again');
      }
      await this.#deps.clock.sleep(pauseMs, this.#closing);
    }
  }
}
