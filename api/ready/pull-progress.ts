import { EventEmitter } from 'node:events';
import { LRUCache } from 'lru-cache';
import { pullProgressed } from '../../contract/messages.ts';
import type { PullProgress } from '../../contract/messages.ts';
import type { Bus } from '../../core/bus/bus.ts';
import type { Clock } from '../../core/clock/clock.ts';

/** More than nodes pull at a time. */
const maxPulls = 10_000;

/** Without a message for this long, the progress is unknown: a layer that is extracted slowly still reports every few seconds. */
const silentAfterMs = 60_000;

/** The progress of image pulls, as the nodes last published it. The bus may lose messages, so it may be missing. */
export class PullProgresses implements AsyncDisposable {
  readonly #latest: LRUCache<string, PullProgress>;
  /** Emits the ID of a backend when its progress changes. Any number of pages may wait for a backend. */
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #owned = new AsyncDisposableStack();

  private constructor(clock: Clock) {
    this.#latest = new LRUCache({
      maxSize: maxPulls,
      sizeCalculation: () => 1,
      ttl: silentAfterMs,
      ttlResolution: 0,
      perf: { now: () => clock.now().getTime() },
    });
  }

  static async open({ bus, clock }: { readonly bus: Bus; readonly clock: Clock }): Promise<PullProgresses> {
    const progresses = new PullProgresses(clock);
    const subscription = await bus.subscribe(pullProgressed, ({ backend, progress }) => {
      progresses.#latest.set(backend, progress);
      progresses.#changes.emit(backend);
    });
    progresses.#owned.use(subscription);
    return progresses;
  }

  /** The latest progress of a backend's pull. */
  of(backend: string): PullProgress | undefined {
    return this.#latest.get(backend);
  }

  /** Calls the listener after each change, until disposed. */
  listen(backend: string, listener: () => void): Disposable {
    this.#changes.on(backend, listener);
    return { [Symbol.dispose]: () => void this.#changes.off(backend, listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}
