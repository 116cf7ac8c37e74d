/** Counting what is open to each backend, and telling it: this is what keeps a backend from being swept. */
import { connectionsHeartbeatMs, connectionsOpen } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';

/**
 * Changes within this time of a message share the next one: a backend that is asked once after the other would otherwise cost
 * two messages a request. Far below the second to which a sweep is exact.
 */
export const gatherMs = 20;

/** Everything open through this proxy: held requests, requests under way, upgraded connections. */
export class Connections implements AsyncDisposable {
  readonly #deps: { id: string; bus: Bus; clock: Clock; log: Log };
  readonly #open = new Map<string, number>();
  /** Backends that had something open since the last message: told once, even if it is closed by now. */
  readonly #seen = new Set<string>();
  readonly #heartbeat: Disposable;
  #gathering: Disposable | undefined;
  #changed = false;
  #total = 0;
  #telling: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;

  constructor(deps: { id: string; bus: Bus; clock: Clock; log: Log }) {
    this.#deps = deps;
    this.#heartbeat = deps.clock.every(connectionsHeartbeatMs, () => this.#tell());
  }

  /** How many are open, to all backends together. */
  get total(): number {
    return this.#total;
  }

  /** Counts one more as open, until disposed. */
  open(backend: string): Disposable {
    const count = (this.#open.get(backend) ?? 0) + 1;
    this.#open.set(backend, count);
    this.#seen.add(backend);
    this.#total += 1;
    if (count === 1) this.#change();
    let isOpen = true;
    const close = () => {
      if (isOpen) this.#close(backend);
      isOpen = false;
    };
    return { [Symbol.dispose]: close };
  }

  /** Tells, as the last word, that nothing is open. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  #close(backend: string): void {
    const count = (this.#open.get(backend) ?? 0) - 1;
    this.#total -= 1;
    if (count > 0) {
      this.#open.set(backend, count);
      return;
    }
    this.#open.delete(backend);
    this.#change();
  }

  #change(): void {
    this.#changed = true;
    if (!this.#gathering) this.#tell();
  }

  #tell(): void {
    if (this.#closed) return;
    const open: Record<string, number> = {};
    for (const backend of this.#seen) open[backend] = 1;
    for (const [backend, count] of this.#open) open[backend] = count;
    // What is told as open but is not any more is a change that remains to be told.
    this.#changed = [...this.#seen].some((backend) => !this.#open.has(backend));
    this.#seen.clear();
    this.#publish(open);
    this.#gathering?.[Symbol.dispose]();
    this.#gathering = this.#deps.clock.after(gatherMs, () => {
      this.#gathering = undefined;
      if (this.#changed) this.#tell();
    });
  }

  #publish(open: Record<string, number>): void {
    const { bus, id, log } = this.#deps;
    const told = bus.publish(connectionsOpen, { proxy: id, open });
    this.#telling = told.catch((error: unknown) => {
      log.warn({ err: error }, 'Open connections could not be told');
    });
  }

  async #finish(): Promise<void> {
    this.#heartbeat[Symbol.dispose]();
    this.#gathering?.[Symbol.dispose]();
    this.#publish({});
    await this.#telling;
  }
}
