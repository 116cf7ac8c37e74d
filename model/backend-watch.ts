/** Following backends as they change: the bus says when to look, the store says what is true. */
import { backendChanged } from '../contract/messages.ts';
import { ChangeListeners } from '../core/async/change-listeners.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { backends } from './backend.ts';
import type { Backend } from './backend.ts';

export interface BackendWatch extends AsyncDisposable {
  /**
   * A backend as it stands, then again after every change, until it has ended or `signal` aborts (which ends the sequence
   * quietly). Yields nothing if there is no such backend. Throws `StoreError` when the store cannot be read.
   */
  follow(backend: string, signal: AbortSignal): AsyncGenerator<Backend, void, void>;
}

export interface BackendWatchDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** The bus may lose a message: this often the store is looked at all the same. */
  readonly lookEveryMs: number;
}

/** Starts listening to changes, with one subscription for all that is followed. */
export async function openBackendWatch({ store, bus, clock, lookEveryMs }: BackendWatchDeps): Promise<BackendWatch> {
  const changes = new ChangeListeners(clock);
  const subscription = await bus.subscribe(backendChanged, ({ backend }) => changes.notify(backend));

  async function* follow(id: string, signal: AbortSignal): AsyncGenerator<Backend, void, void> {
    using change = changes.listen(id);
    for (let seen = 0; !signal.aborted;) {
      const backend = await store.get(backends, id);
      if (!backend) return;
      if (backend.history.length > seen) yield backend;
      seen = backend.history.length;
      if (!backend.live) return;
      await change.next(lookEveryMs, signal).catch(() => {});
    }
  }

  return { follow, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
}
