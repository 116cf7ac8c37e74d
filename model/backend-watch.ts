/** Follows changes of backends: the bus notifies, the store has the state. */
import { backendChanged } from '../contract/messages.ts';
import { ChangeListeners } from '../core/async/change-listeners.ts';
import { RequestCoalescer } from '../core/async/request-coalescer.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { backends } from './backend.ts';
import type { Backend } from './backend.ts';

export interface BackendWatch extends AsyncDisposable {
  /**
   * Yields the backend now and after every change, until it has ended or `signal` aborts, which ends the sequence without an error.
   * Yields nothing if there is no such backend. Throws `StoreError` if the store cannot be read.
   */
  follow(backend: string, signal: AbortSignal): AsyncGenerator<Backend, void, void>;
}

export interface BackendWatchDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** How often the store is read without a message, since the bus may lose messages. */
  readonly lookEveryMs: number;
}

/** Opens a watch, with one subscription for all followed backends. */
export async function openBackendWatch({ store, bus, clock, lookEveryMs }: BackendWatchDeps): Promise<BackendWatch> {
  const changes = new ChangeListeners(clock);
  const reads = new RequestCoalescer<Backend | undefined>();
  const subscription = await bus.subscribe(backendChanged, ({ backend }) => changes.notify(backend));

  async function* follow(id: string, signal: AbortSignal): AsyncGenerator<Backend, void, void> {
    using change = changes.listen(id);
    for (let seen = 0; !signal.aborted;) {
      // A change wakes all followers in one turn of the event loop, and they share the read.
      const backend = await reads.run(id, async () => await store.get(backends, id));
      if (!backend) return;
      if (backend.history.length > seen) yield backend;
      seen = backend.history.length;
      if (!backend.live) return;
      await change.next(lookEveryMs, signal).catch(() => {});
    }
  }

  return { follow, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
}
