/** Follows changes of backends: the bus notifies, the store has the state. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { backendChanged } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { backends } from './backend.ts';
import type { Backend } from './backend.ts';

export interface BackendWatch extends AsyncDisposable {
  /**
   * Yields the backend now and after every change of its status or its start problem, until it has ended or `signal` aborts, which ends the sequence without an error.
   * Yields nothing if there is no such backend. Throws `StoreError` if the store cannot be read.
   */
  follow(backend: string, signal: AbortSignal): AsyncGenerator<Backend, void, void>;
}

export interface BackendWatchDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** How often the store is read without a message, since the bus may lose messages. */
  readonly pollEveryMs: number;
}

/** How many followers are notified before other work of the process runs: about 5 ms of writes to event streams. */
const notifiedAtOnce = 200;

/** Opens a watch, with one subscription for all followed backends. */
export async function openBackendWatch({ store, bus, clock, pollEveryMs }: BackendWatchDeps): Promise<BackendWatch> {
  const followed = new Map<string, FollowedBackend>();
  const subscription = await bus.subscribe(backendChanged, ({ backend }) => followed.get(backend)?.refresh());

  function join(id: string, follower: Follower): FollowedBackend {
    let backend = followed.get(id);
    if (!backend) {
      backend = new FollowedBackend(async () => await store.get(backends, id));
      backend.pollEvery(pollEveryMs, clock);
      followed.set(id, backend);
    }
    backend.followers.add(follower);
    return backend;
  }

  function leave(id: string, follower: Follower, backend: FollowedBackend): void {
    backend.followers.delete(follower);
    if (backend.followers.size > 0) return;
    backend[Symbol.dispose]();
    followed.delete(id);
  }

  async function* follow(id: string, signal: AbortSignal): AsyncGenerator<Backend, void, void> {
    const follower = new Follower(signal);
    // Before the first read, so that no change is missed in between.
    const backend = join(id, follower);
    try {
      let latest = await backend.read();
      for (let seen: Backend | undefined; latest && !signal.aborted; latest = await follower.next()) {
        if (!isChanged(latest, seen)) continue;
        seen = latest;
        yield latest;
        if (!latest.live) return;
      }
    } finally {
      leave(id, follower, backend);
    }
  }

  return { follow, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
}

/** Whether a backend has a new status, or a new problem with its status, since it was last seen. */
function isChanged(latest: Backend, seen: Backend | undefined): boolean {
  const more = latest.history.length - (seen?.history.length ?? 0);
  return more > 0 || (more === 0 && latest.startProblem !== seen?.startProblem);
}

/** A backend with followers. One read after a change serves all of them. */
class FollowedBackend implements Disposable {
  readonly read: () => Promise<Backend | undefined>;
  readonly followers = new Set<Follower>();
  #polling: Disposable | undefined;
  #isRefreshing = false;
  #isRefreshDue = false;

  constructor(read: () => Promise<Backend | undefined>) {
    this.read = read;
  }

  pollEvery(periodMs: number, clock: Clock): void {
    this.#polling = clock.every(periodMs, () => this.refresh());
  }

  /** Reads the backend, and passes it to the followers. */
  refresh(): void {
    this.#isRefreshDue = true;
    if (!this.#isRefreshing) void this.#refreshWhileDue();
  }

  [Symbol.dispose](): void {
    this.#polling?.[Symbol.dispose]();
  }

  async #refreshWhileDue(): Promise<void> {
    this.#isRefreshing = true;
    while (this.#isRefreshDue) {
      this.#isRefreshDue = false;
      const reading = this.read();
      // Each follower throws the error of a failed read.
      await reading.catch(() => {});
      let count = 0;
      for (const follower of this.followers) {
        follower.receive(reading);
        count += 1;
        if (count % notifiedAtOnce === 0) await nextTurn();
      }
    }
    this.#isRefreshing = false;
  }
}

/** Waits for the next read. */
class Follower {
  readonly #signal: AbortSignal;
  #reading: Promise<Backend | undefined> | undefined;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
  }

  receive(reading: Promise<Backend | undefined>): void {
    this.#reading = reading;
    this.#wake?.();
  }

  /** Returns the latest read since the last call, or else the next one; `undefined` when the signal aborts. */
  async next(): Promise<Backend | undefined> {
    if (!this.#reading && !this.#signal.aborted) await new Promise<void>((resolve) => (this.#wake = resolve));
    const reading = this.#reading;
    this.#reading = undefined;
    return await reading;
  }
}
