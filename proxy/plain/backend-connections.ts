/** Connections to backends that carry one plain request after the other, in a pool for each backend. */
import { once } from 'node:events';
import type { Clock } from '../../core/clock/clock.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { connectLimitMs } from '../forward/dial.ts';
import type { Dialer, Dialled } from '../forward/dial.ts';
import { endedGraceMs, idleMs, maxIdle } from '../forward/pools.ts';
import { Channel } from './channel.ts';
import type { ChannelUser } from './channel.ts';

/** A connection to a backend. */
export interface BackendConnection {
  readonly backend: string;
  readonly channel: Channel;
  /** Whether it has carried a request already, so that the backend may have closed it meanwhile. */
  isUsed: boolean;
}

interface Idle {
  readonly connection: BackendConnection;
  readonly sinceMs: number;
}

/** How often idle connections are looked at: there is no timer for each. */
const sweepMs = 500;

interface Deps {
  readonly clock: Clock;
  readonly dialer: Dialer;
  readonly errorBoundary: ErrorBoundary;
}

export class BackendConnections implements Disposable {
  readonly #deps: Deps;
  /** The connections that no request uses, the last used one at the end. */
  readonly #idle = new Map<string, Idle[]>();
  readonly #open = new Map<string, Set<BackendConnection>>();
  readonly #sweep: Disposable;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#sweep = deps.clock.every(sweepMs, () => this.#closeIdle());
  }

  /** An idle connection to a backend, `undefined` if there is none. */
  take(backend: string): BackendConnection | undefined {
    const idle = this.#idle.get(backend);
    for (;;) {
      const last = idle?.pop();
      if (!last) return undefined;
      if (!last.connection.channel.socket.destroyed) return last.connection;
    }
  }

  /** Connects to a backend. Rejects as `Dialer.dial`. */
  async connect(to: Dialled, signal: AbortSignal): Promise<BackendConnection> {
    const { dialer, errorBoundary } = this.#deps;
    const channel = dialer.isDirect(to.address)
      ? await this.#connectDirectly(to, signal)
      : Channel.ofTunnel(await dialer.dial(to, signal), unused, errorBoundary);
    channel.user = unusedOn(channel);
    const connection = { backend: to.backend, channel, isUsed: false };
    const open = this.#open.get(to.backend) ?? new Set();
    this.#open.set(to.backend, open.add(connection));
    channel.socket.once('close', () => {
      open.delete(connection);
      if (open.size === 0 && this.#open.get(to.backend) === open) this.#open.delete(to.backend);
    });
    return connection;
  }

  /** Keeps a connection whose answer has ended for the next request. */
  keep(connection: BackendConnection): void {
    const { backend, channel } = connection;
    const idle = this.#idle.get(backend) ?? [];
    // A backend that has ended is not asked again.
    if (channel.socket.destroyed || idle.length >= maxIdle || !this.#open.get(backend)?.has(connection)) {
      channel.destroy();
      return;
    }
    connection.isUsed = true;
    channel.user = unusedOn(channel);
    if (channel.socket.isPaused()) channel.resume();
    idle.push({ connection, sinceMs: this.#nowMs() });
    this.#idle.set(backend, idle);
  }

  /** Closes the idle connections of a backend that has ended now, and those in use after a grace period. */
  drop(backend: string): void {
    for (const { connection } of this.#idle.get(backend) ?? []) connection.channel.destroy();
    this.#idle.delete(backend);
    const open = this.#open.get(backend);
    if (!open) return;
    this.#open.delete(backend);
    this.#deps.clock.after(endedGraceMs, () => destroyAll(open));
  }

  [Symbol.dispose](): void {
    this.#sweep[Symbol.dispose]();
    for (const open of this.#open.values()) destroyAll(open);
    this.#idle.clear();
  }

  async #connectDirectly({ address }: Dialled, signal: AbortSignal): Promise<Channel> {
    const { clock, errorBoundary } = this.#deps;
    signal.throwIfAborted();
    const channel = Channel.to(address, unused, errorBoundary);
    const late = () => channel.socket.destroy(new Error('The backend does not accept the connection'));
    using _limit = clock.after(connectLimitMs, late);
    try {
      await once(channel.socket, 'connect', { signal });
      return channel;
    } catch (error) {
      channel.destroy();
      throw error;
    }
  }

  #closeIdle(): void {
    const lastMs = this.#nowMs() - idleMs;
    for (const [backend, idle] of this.#idle) {
      const firstYoung = idle.findIndex(({ sinceMs }) => sinceMs > lastMs);
      const old = idle.splice(0, firstYoung < 0 ? idle.length : firstYoung);
      for (const { connection } of old) connection.channel.destroy();
      if (idle.length === 0) this.#idle.delete(backend);
    }
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime();
  }
}

/** Closes a connection, about which nothing more is reported. */
export function discard({ channel }: BackendConnection): void {
  channel.user = unused;
  channel.destroy();
}

/** Until it is connected, a connection only closes. */
const unused: ChannelUser = { onBytes: () => {}, onEnd: () => {}, onClose: () => {} };

/** A backend that sends without a request is not asked again, nor is one that closes the connection. */
function unusedOn(channel: Channel): ChannelUser {
  const close = () => channel.destroy();
  return { onBytes: close, onEnd: close, onClose: () => {} };
}

function destroyAll(connections: Iterable<BackendConnection>): void {
  for (const { channel } of connections) channel.destroy();
}
