/** Counts the traffic of each backend, and stores the sums periodically. A request costs no write. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { PeriodicTask } from '../core/async/periodic-task.ts';
import { withTimeout } from '../core/async/with-timeout.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';
import type { Store } from '../core/store/store.ts';
import { upsert } from '../core/store/upsert.ts';
import { proxies, proxyAliveMs, traffic, trafficWriteMs } from '../model/traffic.ts';
import type { Traffic } from '../model/traffic.ts';

/** How many backends a pass writes, those that have waited longest first. The next pass writes the others. */
const maxWrites = 1_000;

const concurrentWrites = 16;

/** Time limits of a pass, and of the last pass of a proxy that closes. */
const passLimitMs = 8_000;
const lastPassLimitMs = 2_000;

/** The entry of a backend without traffic for this long is deleted: its document has everything. */
const forgetAfterMs = 10 * 60_000;

interface Deps {
  /** Identifies this proxy, until its process ends. */
  readonly id: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** The number of open connections of each backend that has any. */
  readonly openConnections: () => Iterable<readonly [backend: string, count: number]>;
  /**
   * The open requests of the plain path, each with the traffic of its client's connection. Each pass reads them, so that a request costs
   * nothing.
   */
  readonly plainRequests: () => Iterable<readonly [backend: string, connection: SocketTraffic]>;
}

type Counted = Pick<Traffic, 'requests' | 'receivedBytes' | 'sentBytes' | 'openConnections'>;

interface Entry {
  readonly documentId: string;
  requests: number;
  receivedBytes: number;
  sentBytes: number;
  openConnections: number;
  /** The counts in the store. */
  written: Counted | undefined;
  changedMs: number;
}

/** A client's connection, and its traffic since it was opened. */
export interface SocketTraffic {
  readonly socket: Socket;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** An open request of the general path or an upgraded connection, whose bytes each pass counts. */
export interface OpenExchange {
  /** Absent until it is known. */
  readonly backend?: string;
  readonly socket: Socket;
}

/** The traffic of a connection so far. */
export function socketTraffic(socket: Socket): SocketTraffic {
  return { socket, receivedBytes: socket.bytesRead, sentBytes: socket.bytesWritten };
}

const countedBytes = Symbol('The bytes of a connection that are counted already');

/** Reading a property is faster than reading a map. */
type CountedSocket = Socket & { [countedBytes]?: { receivedBytes: number; sentBytes: number } };

export class BackendTraffic implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #entries = new Map<string, Entry>();
  readonly #open = new Set<OpenExchange>();
  readonly #passes: PeriodicTask;
  #isClosed = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#passes = new PeriodicTask(deps.clock, trafficWriteMs, async () => await this.#write(passLimitMs));
  }

  /** Counts a request that has ended, and the bytes on its client's connection since the last request. */
  ended(backend: string, connection: SocketTraffic): void {
    this.#count(backend, connection).requests += 1;
  }

  /** Counts the bytes of an open request or upgraded connection with each pass, until `unfollow`. */
  follow(open: OpenExchange): void {
    this.#open.add(open);
  }

  unfollow(open: OpenExchange): void {
    this.#open.delete(open);
  }

  /** Stores the remaining counts. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#passes[Symbol.asyncDispose]();
    await this.#write(lastPassLimitMs);
  }

  #count(backend: string, { socket, receivedBytes, sentBytes }: SocketTraffic): Entry {
    const entry = this.#entryOf(backend);
    const counted = ((socket as CountedSocket)[countedBytes] ??= { receivedBytes: 0, sentBytes: 0 });
    entry.receivedBytes += Math.max(0, receivedBytes - counted.receivedBytes);
    entry.sentBytes += Math.max(0, sentBytes - counted.sentBytes);
    counted.receivedBytes = receivedBytes;
    counted.sentBytes = sentBytes;
    return entry;
  }

  #entryOf(backend: string): Entry {
    const known = this.#entries.get(backend);
    if (known) return known;
    const changedMs = this.#deps.clock.now().getTime();
    const counts = { requests: 0, receivedBytes: 0, sentBytes: 0, openConnections: 0 };
    const entry = { documentId: `${backend}/${randomUUID()}`, ...counts, written: undefined, changedMs };
    this.#entries.set(backend, entry);
    return entry;
  }

  async #write(limitMs: number): Promise<void> {
    const { clock, log } = this.#deps;
    this.#gather();
    const limit = { clock, ms: limitMs, message: 'The store does not answer' };
    await withTimeout(limit, (signal) => this.#writeChanged(signal)).catch((error: unknown) =>
      log.warn({ err: error }, 'Cannot store the traffic of backends, the next pass tries again'),
    );
  }

  /** Adds the bytes of open requests, and updates the numbers of open connections. */
  #gather(): void {
    for (const { backend, socket } of this.#open) {
      if (backend !== undefined) this.#count(backend, socketTraffic(socket));
    }
    for (const [backend, connection] of this.#deps.plainRequests()) this.#count(backend, connection);
    for (const entry of this.#entries.values()) entry.openConnections = 0;
    for (const [backend, count] of this.#deps.openConnections()) this.#entryOf(backend).openConnections = count;
  }

  async #writeChanged(signal: AbortSignal): Promise<void> {
    const { id, store, clock } = this.#deps;
    const nowMs = clock.now().getTime();
    const changed: [string, Entry][] = [];
    for (const [backend, entry] of this.#entries) {
      if (isChanged(entry)) changed.push([backend, entry]);
      else if (entry.openConnections === 0 && nowMs - entry.changedMs > forgetAfterMs) this.#entries.delete(backend);
    }
    const isAnyOpen = [...this.#entries.values()].some(({ openConnections }) => openConnections > 0);
    const writtenAt = await store.now();
    if (isAnyOpen) {
      const presence = { id, aliveUntil: new Date(writtenAt.getTime() + proxyAliveMs) };
      await upsert(store, proxies, id, () => presence);
    }
    const left = changed.slice(0, maxWrites);
    const next = async () => {
      for (let each = left.shift(); each && !signal.aborted; each = left.shift()) {
        await this.#writeEntry(...each, writtenAt);
      }
    };
    await Promise.all(Array.from({ length: concurrentWrites }, next));
  }

  async #writeEntry(backend: string, entry: Entry, writtenAt: Date): Promise<void> {
    const { id: proxy, store, clock } = this.#deps;
    const { documentId, requests, receivedBytes, sentBytes, openConnections } = entry;
    const counted = { requests, receivedBytes, sentBytes, openConnections };
    await upsert(store, traffic, documentId, () => ({ id: documentId, backend, proxy, ...counted, writtenAt }));
    entry.written = counted;
    entry.changedMs = clock.now().getTime();
    // The next pass writes the other backends first.
    this.#entries.delete(backend);
    this.#entries.set(backend, entry);
  }
}

function isChanged({ written, requests, receivedBytes, sentBytes, openConnections }: Entry): boolean {
  return (
    written?.requests !== requests ||
    written.receivedBytes !== receivedBytes ||
    written.sentBytes !== sentBytes ||
    written.openConnections !== openConnections
  );
}
