/** How the worker writes the documents of its backends: in order, and again while the store is away. */
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

/** How long to wait before writing again while the store is away. */
const firstPauseMs = 100;
const longestPauseMs = 3_000;

/**
 * Writes the changes of one backend in the order in which they came. Those that come while a write is under way go together
 * in the next one, so a slow store never holds a container up. While the store is away it keeps trying; a change that fails by
 * itself is given up, and those beside it are written.
 */
export class Statuses {
  readonly #deps: StatusesDeps;
  readonly #id: string;
  readonly #closing: AbortSignal;
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;

  /** @param closing - the worker stops: what cannot be written now is left to the next one */
  constructor(deps: StatusesDeps, id: string, closing: AbortSignal) {
    this.#deps = deps;
    this.#id = id;
    this.#closing = closing;
  }

  /**
   * Resolves when the change is durable, with the document as it then stands (`undefined`: there is none). Rejects when the
   * worker closes before it could be written, and with what the change itself fails with, which is logged. Nobody needs to
   * wait for it.
   */
  write(change: BackendChange): Promise<Backend | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Backend | undefined>();
    promise.catch(() => {});
    this.#pending.push({ change, resolve, reject });
    this.#writing ??= this.#writeAll();
    return promise;
  }

  /** Resolves when all that was asked for so far has been written, or given up. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      // Which of them fails, if any, shows when each is written alone.
      if (!(await this.#writeBatch(batch))) for (const each of batch) await this.#writeOne(each);
    }
    this.#writing = undefined;
  }

  /** Returns whether all could be written. */
  async #writeBatch(batch: readonly Pending[]): Promise<boolean> {
    if (batch.length === 1) return false;
    try {
      const written = await this.#writeWhenThere((backend) => batch.reduce((now, { change }) => change(now), backend));
      for (const { resolve } of batch) resolve(written);
      return true;
    } catch {
      return false;
    }
  }

  async #writeOne({ change, resolve, reject }: Pending): Promise<void> {
    try {
      resolve(await this.#writeWhenThere(change));
    } catch (error) {
      if (!this.#closing.aborted) this.#deps.log.error({ err: error, backend: this.#id }, 'Change of a backend failed');
      reject(error);
    }
  }

  /** Writes as soon as the store is there. Throws what the change throws, and when the worker closes. */
  async #writeWhenThere(change: BackendChange): Promise<Backend | undefined> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        const { backend } = await changeBackend(this.#deps, this.#id, change);
        return backend;
      } catch (error) {
        this.#closing.throwIfAborted();
        if (!(error instanceof StoreError && error.code === 'unavailable')) throw error;
        this.#deps.log.warn({ err: error, backend: this.#id }, 'Status cannot be written, trying again');
      }
      await this.#deps.clock.sleep(pauseMs, this.#closing);
    }
  }
}
