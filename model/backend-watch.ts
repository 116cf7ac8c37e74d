/** Following backends as they change: the bus says when to look, the store says what is true. */
import { backendChanged } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { backends } from './backend.ts';
import type { Backend } from './backend.ts';

/** The bus may lose a message: this often the store is looked at all the same. */
const lookEveryMs = 5_000;

export interface BackendWatch extends AsyncDisposable {
  /**
   * A backend as it stands, then again after every change, until it has ended or `signal` aborts (which ends the sequence
   * quietly). Yields nothing if there is no such backend. Throws `StoreError` when the store cannot be read.
   */
  follow(backend: string, signal: AbortSignal): AsyncGenerator<Backend, void, void>;
}

/** Starts listening to changes, with one subscription for everyone who follows a backend. */
export async function openBackendWatch(deps: { store: Store; bus: Bus; clock: Clock }): Promise<BackendWatch> {
  const followers = new Map<string, Set<() => void>>();
  const subscription = await deps.bus.subscribe(backendChanged, ({ backend }) => {
    for (const wake of followers.get(backend) ?? []) wake();
  });

  async function* follow(id: string, signal: AbortSignal): AsyncGenerator<Backend, void, void> {
    const bell = newBell(signal);
    const wakers = followers.get(id) ?? new Set();
    followers.set(id, wakers.add(bell.ring));
    const looks = deps.clock.every(lookEveryMs, bell.ring);
    try {
      for (let seen = 0; !signal.aborted;) {
        const backend = await deps.store.get(backends, id);
        if (!backend) return;
        if (backend.history.length > seen) yield backend;
        seen = backend.history.length;
        if (!backend.live) return;
        await bell.rung();
      }
    } finally {
      looks[Symbol.dispose]();
      bell[Symbol.dispose]();
      wakers.delete(bell.ring);
      if (wakers.size === 0) followers.delete(id);
    }
  }

  return { follow, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
}

/** A bell that remembers having been rung, so that nothing between two looks is missed. */
function newBell(signal: AbortSignal): Disposable & { ring: () => void; rung: () => Promise<void> } {
  let isRung = false;
  let wake: (() => void) | undefined;
  const ring = () => {
    isRung = true;
    wake?.();
  };
  signal.addEventListener('abort', ring, { once: true });
  return {
    ring,
    rung: async () => {
      if (!isRung) await new Promise<void>((resolve) => (wake = resolve));
      isRung = false;
    },
    [Symbol.dispose]: () => signal.removeEventListener('abort', ring),
  };
}
