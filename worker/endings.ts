import { backendChanged } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { backends } from '../model/backend.ts';

/** A message may be lost, so the store is asked now and then. */
const lookEveryMs = 1_000;

/** Waits for backends, of this node or another, to end. */
export class Endings {
  readonly #deps: { readonly store: Store; readonly clock: Clock };
  readonly #waiting = new Map<string, Set<() => void>>();
  #subscription: AsyncDisposable | undefined;

  constructor(deps: { store: Store; clock: Clock }) {
    this.#deps = deps;
  }

  /** Begins to listen. Without it, waiting takes up to a second longer. */
  async listen(bus: Bus): Promise<void> {
    this.#subscription = await bus.subscribe(backendChanged, ({ backend, status }) => {
      if (status === 'terminated') for (const wake of this.#waiting.get(backend) ?? []) wake();
    });
  }

  /** Resolves when the store says that a backend has ended. Rejects when the signal aborts, or the store cannot be read. */
  async untilEnded(backend: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const told = this.#nextMessage(backend);
      try {
        const document = await this.#deps.store.get(backends, backend);
        if (!document?.live) return;
        await this.#sleep(told.promise, signal);
      } finally {
        told.forget();
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#subscription?.[Symbol.asyncDispose]();
  }

  async #sleep(told: Promise<void>, signal: AbortSignal): Promise<void> {
    const awake = new AbortController();
    const pause = this.#deps.clock.sleep(lookEveryMs, AbortSignal.any([signal, awake.signal]));
    try {
      await Promise.race([told, pause]);
    } finally {
      pause.catch(() => {});
      awake.abort();
    }
  }

  #nextMessage(backend: string): { promise: Promise<void>; forget: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(backend) ?? new Set();
    this.#waiting.set(backend, waiting.add(resolve));
    const forget = () => {
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(backend) === waiting) this.#waiting.delete(backend);
    };
    return { promise, forget };
  }
}
