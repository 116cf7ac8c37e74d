/** Counts open connections and reports them on the bus. A backend with open connections is not swept. */
import { connectionsHeartbeatMs, connectionsOpen } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';

/**
 * Changes within this time after a report share the next report. Without this, consecutive requests to a backend would cost two
 * messages each. It is far below the second to which a sweep is exact.
 */
export const gatherMs = 20;

interface ConnectionsDeps {
  readonly id: string;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
}

/** Everything that is open through this proxy: held requests, requests in progress, upgraded connections. */
export class Connections implements AsyncDisposable {
  readonly #deps: ConnectionsDeps;
  readonly #open = new Map<string, number>();
  /** Backends that had an open connection since the last report. The next one includes them, even if they have none any more. */
  readonly #seen = new Set<string>();
  readonly #heartbeat: Disposable;
  #gathering: Disposable | undefined;
  #changed = false;
  #total = 0;
  #publishing: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
    this.#heartbeat = deps.clock.every(connectionsHeartbeatMs, () => this.#report());
  }

  /** How many are open to all backends together. */
  get total(): number {
    return this.#total;
  }

  /** Counts a connection to a backend as open, until disposed. */
  open(backend: string): Disposable {
    const count = (this.#open.get(backend) ?? 0) + 1;
    this.#open.set(backend, count);
    this.#seen.add(backend);
    this.#total += 1;
    if (count === 1) this.#reportSoon();
    let isOpen = true;
    const close = () => {
      if (isOpen) this.#close(backend);
      isOpen = false;
    };
    return { [Symbol.dispose]: close };
  }

  /** Finally reports that nothing is open. */
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
    this.#reportSoon();
  }

  #reportSoon(): void {
    this.#changed = true;
    if (!this.#gathering) this.#report();
  }

  #report(): void {
    if (this.#closed) return;
    const open: Record<string, number> = {};
    for (const backend of this.#seen) open[backend] = 1;
    for (const [backend, count] of this.#open) open[backend] = count;
    // Connections that this report lists although they are closed are a change for the next report.
    this.#changed = [...this.#seen].some((backend) => !this.#open.has(backend));
    this.#seen.clear();
    this.#publish(open);
    this.#gathering?.[Symbol.dispose]();
    this.#gathering = this.#deps.clock.after(gatherMs, () => {
      this.#gathering = undefined;
      if (this.#changed) this.#report();
    });
  }

  #publish(open: Record<string, number>): void {
    const { bus, id, log } = this.#deps;
    this.#publishing = bus.publish(connectionsOpen, { proxy: id, open }).catch((error: unknown) => {
      log.warn({ err: error }, 'Cannot report open connections');
    });
  }

  async #finish(): Promise<void> {
    this.#heartbeat[Symbol.dispose]();
    this.#gathering?.[Symbol.dispose]();
    this.#publish({});
    await this.#publishing;
  }
}
