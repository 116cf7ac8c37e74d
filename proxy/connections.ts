/** Counts open connections, and reports them to the nodes of their backends. A backend with open connections is not swept. */
import { connectionsHeartbeatMs, connectionsOf, proxyHeartbeat } from '../contract/messages.ts';
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

/** A connection to a backend that counts as open until disposed. */
export interface OpenConnection extends Disposable {
  /** Names the node of the backend, as soon as it is known. Until then, the connection cannot be reported. */
  at(node: string | undefined): void;
}

interface BackendConnections {
  count: number;
  /** A backend never changes its node. */
  node: string | undefined;
}

/** Backends and how many connections they have open, by node. */
type OpenByNode = Map<string, Record<string, number>>;

/** Everything that is open through this proxy: held requests, requests in progress, upgraded connections. */
export class Connections implements AsyncDisposable {
  readonly #deps: ConnectionsDeps;
  readonly #open = new Map<string, BackendConnections>();
  /** The nodes of backends that the next report must include, because their first connection opened or their last one closed. */
  readonly #changed = new Map<string, string>();
  /** Backends that had an open connection since the last report. The next one includes it, even if it has closed since. */
  readonly #opened = new Set<string>();
  readonly #heartbeat: Disposable;
  #gathering: Disposable | undefined;
  #total = 0;
  #publishing: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
    this.#heartbeat = deps.clock.every(connectionsHeartbeatMs, () => this.#reportAll());
  }

  /** The number of open connections to all backends. */
  get total(): number {
    return this.#total;
  }

  /** The number of open connections to each backend that has any. */
  *counts(): Generator<[backend: string, count: number]> {
    for (const [backend, { count }] of this.#open) yield [backend, count];
  }

  /** Counts a connection to a backend as open, until disposed. */
  open(backend: string, node?: string): OpenConnection {
    this.begin(backend, node);
    let isOpen = true;
    return {
      at: (known) => void (isOpen && this.#locate(backend, known)),
      [Symbol.dispose]: () => {
        if (isOpen) this.end(backend);
        isOpen = false;
      },
    };
  }

  /** Counts one more connection to a backend as open, until a call of `end`. */
  begin(backend: string, node: string | undefined): void {
    const entry = this.#open.get(backend);
    this.#total += 1;
    if (entry) entry.count += 1;
    else this.#open.set(backend, { count: 1, node: undefined });
    if (!entry || entry.node === undefined) this.#locate(backend, node);
  }

  /** Counts a connection to a backend as closed. */
  end(backend: string): void {
    const entry = this.#open.get(backend);
    if (!entry) return;
    this.#total -= 1;
    entry.count -= 1;
    if (entry.count > 0) return;
    this.#open.delete(backend);
    if (entry.node !== undefined) this.#reportSoon(backend, entry.node);
  }

  /** Finally reports that nothing is open. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  #locate(backend: string, node: string | undefined): void {
    const entry = this.#open.get(backend);
    if (!entry || node === undefined || entry.node !== undefined) return;
    entry.node = node;
    this.#opened.add(backend);
    this.#reportSoon(backend, node);
  }

  #reportSoon(backend: string, node: string): void {
    this.#changed.set(backend, node);
    if (!this.#gathering) this.#reportChanges();
  }

  #reportChanges(): void {
    if (this.#closed) return;
    const changes: OpenByNode = new Map();
    for (const [backend, node] of this.#changed) add(changes, node, backend, this.#reportedCount(backend));
    for (const [node, open] of changes) this.#publish(node, open, { isWhole: false });
    this.#settle();
  }

  #reportAll(): void {
    if (this.#closed) return;
    const all: OpenByNode = new Map();
    for (const [backend, { node, count }] of this.#open) if (node !== undefined) add(all, node, backend, count);
    for (const [backend, node] of this.#changed) {
      const count = this.#reportedCount(backend);
      if (count > 0) add(all, node, backend, count);
    }
    for (const [node, open] of all) this.#publish(node, open, { isWhole: true });
    this.#publishHeartbeat([...all.keys()]);
    this.#settle();
  }

  /** A connection that opened and closed since the last report is reported as open once, so that its time is known. */
  #reportedCount(backend: string): number {
    return this.#open.get(backend)?.count ?? (this.#opened.has(backend) ? 1 : 0);
  }

  /** After a report: keeps backends that it listed as open although they are closed for the next report, at least `gatherMs` later. */
  #settle(): void {
    for (const backend of this.#changed.keys()) {
      if (this.#open.has(backend) || !this.#opened.has(backend)) this.#changed.delete(backend);
    }
    this.#opened.clear();
    this.#gathering?.[Symbol.dispose]();
    this.#gathering = this.#deps.clock.after(gatherMs, () => {
      this.#gathering = undefined;
      if (this.#changed.size > 0) this.#reportChanges();
    });
  }

  #publish(node: string, open: Record<string, number>, { isWhole }: { isWhole: boolean }): void {
    const { bus, id } = this.#deps;
    this.#follow(bus.publish(connectionsOf(node), { proxy: id, isWhole, open }));
  }

  #publishHeartbeat(nodes: string[]): void {
    const { bus, id } = this.#deps;
    this.#follow(bus.publish(proxyHeartbeat, { proxy: id, nodes }));
  }

  #follow(publishing: Promise<void>): void {
    this.#publishing = publishing.catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, 'Cannot report open connections');
    });
  }

  async #finish(): Promise<void> {
    this.#heartbeat[Symbol.dispose]();
    this.#gathering?.[Symbol.dispose]();
    this.#publishHeartbeat([]);
    await this.#publishing;
  }
}

function add(nodes: OpenByNode, node: string, backend: string, count: number): void {
  const open = nodes.get(node);
  if (open) open[backend] = count;
  else nodes.set(node, { [backend]: count });
}
