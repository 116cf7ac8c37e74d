/** Connections to backends that carry one plain request after the other, in a pool for each backend. */
import type { Clock } from '../../core/clock/clock.ts';
import { hasFailedWrite } from '../../core/http/read-after-failed-write.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { connectLimitMs } from '../forward/dial.ts';
import type { Dialer, Dialled } from '../forward/dial.ts';
import { endedGraceMs, idleMs, maxIdle } from '../forward/pools.ts';
import { Channel, unused } from './channel.ts';
import type { ChannelUser } from './channel.ts';

/** A connection to a backend. It is the user of its channel while no request uses it. */
export class BackendConnection implements ChannelUser {
  readonly channel: Channel;
  readonly pool: Pool;
  /** Whether it has carried a request already, so that the backend may have closed it meanwhile. */
  isUsed = false;
  idleSinceMs = 0;

  constructor(channel: Channel, pool: Pool) {
    this.channel = channel;
    this.pool = pool;
    channel.user = this;
  }

  /** A backend that sends bytes without a request gets no further requests on this connection. */
  onBytes(): void {
    this.channel.destroy();
  }

  onEnd(): void {
    this.channel.destroy();
  }

  onClose(): void {}

  /** Closes the connection without further callbacks. */
  discard(): void {
    this.channel.user = unused;
    this.channel.destroy();
  }
}

/** A connection that is being opened. */
export interface Opening {
  /** Rejects as `Dialer.dial`. */
  readonly opened: Promise<BackendConnection>;
  /** Ends it, unless it is open. */
  cancel(): void;
}

/** The connections to one backend. */
interface Pool {
  /** Unused connections, the most recently used one last. */
  readonly idle: BackendConnection[];
  readonly open: Set<BackendConnection>;
  /** A backend that has ended gets no further requests. */
  hasEnded: boolean;
}

/** How often idle connections are checked: there is no timer for each. */
const sweepMs = 500;

interface Deps {
  readonly clock: Clock;
  readonly dialer: Dialer;
  readonly errorBoundary: ErrorBoundary;
}

export class BackendConnections implements Disposable {
  readonly #deps: Deps;
  readonly #pools = new Map<string, Pool>();
  readonly #sweep: Disposable;
  /** The time of the last sweep. */
  #sweptMs: number;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#sweptMs = deps.clock.now().getTime();
    this.#sweep = deps.clock.every(sweepMs, () => this.#closeIdle());
  }

  /** Removes an idle connection from its pool and returns it, `undefined` if there is none. */
  take(backend: string): BackendConnection | undefined {
    const idle = this.#pools.get(backend)?.idle;
    for (;;) {
      const last = idle?.pop();
      if (!last?.channel.socket.destroyed) return last;
    }
  }

  /** Opens a connection to a backend. */
  open(to: Dialled): Opening {
    return this.#deps.dialer.isOnOtherNode(to.address) ? this.#openTunnel(to) : this.#openDirectly(to);
  }

  /** Keeps a connection whose answer has ended for the next request. */
  keep(connection: BackendConnection): void {
    const { channel, pool } = connection;
    const isClosed = channel.socket.destroyed || hasFailedWrite(channel.socket);
    if (isClosed || pool.idle.length >= maxIdle || pool.hasEnded) {
      channel.destroy();
      return;
    }
    connection.isUsed = true;
    connection.idleSinceMs = this.#sweptMs;
    channel.user = connection;
    if (channel.socket.isPaused()) channel.resume();
    pool.idle.push(connection);
  }

  /** Closes the connections of a backend that has ended: idle ones at once, others after a grace period. */
  drop(backend: string): void {
    const pool = this.#pools.get(backend);
    if (!pool) return;
    this.#pools.delete(backend);
    pool.hasEnded = true;
    destroyAll(pool.idle);
    this.#deps.clock.after(endedGraceMs, () => destroyAll(pool.open));
  }

  [Symbol.dispose](): void {
    this.#sweep[Symbol.dispose]();
    for (const { open } of this.#pools.values()) destroyAll(open);
    this.#pools.clear();
  }

  /** Avoids promises and signals for each step: a page load opens many connections at once, and each delays all others. */
  #openDirectly(to: Dialled): Opening {
    const { clock, errorBoundary } = this.#deps;
    const { promise: opened, resolve, reject } = Promise.withResolvers<BackendConnection>();
    const waiting: ChannelUser = {
      ...unused,
      onClose: (error) => {
        limit[Symbol.dispose]();
        reject(error ?? new Error('The connect was cancelled'));
      },
    };
    const channel = Channel.to(to.address, waiting, errorBoundary);
    const late = () => channel.socket.destroy(new Error('The backend does not accept the connection'));
    const limit = clock.after(connectLimitMs, late);
    channel.socket.once('connect', () => {
      limit[Symbol.dispose]();
      resolve(this.#pooled(to, channel));
    });
    return { opened, cancel: () => void (channel.user === waiting && channel.destroy()) };
  }

  #openTunnel(to: Dialled): Opening {
    const { dialer, errorBoundary } = this.#deps;
    const cancelling = new AbortController();
    const open = async () => {
      return this.#pooled(to, Channel.ofTunnel(await dialer.dial(to, cancelling.signal), unused, errorBoundary));
    };
    return { opened: open(), cancel: () => cancelling.abort(new Error('The connect was cancelled')) };
  }

  #pooled(to: Dialled, channel: Channel): BackendConnection {
    const pool = this.#pools.get(to.backend) ?? { idle: [], open: new Set(), hasEnded: false };
    this.#pools.set(to.backend, pool);
    const connection = new BackendConnection(channel, pool);
    pool.open.add(connection);
    channel.socket.once('close', () => {
      pool.open.delete(connection);
      if (pool.open.size === 0 && this.#pools.get(to.backend) === pool) this.#pools.delete(to.backend);
    });
    return connection;
  }

  #closeIdle(): void {
    this.#sweptMs = this.#deps.clock.now().getTime();
    const lastMs = this.#sweptMs - idleMs;
    for (const { idle } of this.#pools.values()) {
      const firstYoung = idle.findIndex(({ idleSinceMs }) => idleSinceMs > lastMs);
      destroyAll(idle.splice(0, firstYoung < 0 ? idle.length : firstYoung));
    }
  }
}

function destroyAll(connections: Iterable<BackendConnection>): void {
  for (const { channel } of connections) channel.destroy();
}
