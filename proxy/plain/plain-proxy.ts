/**
 * Forwards plain requests between the sockets of clients and backends, without Node's HTTP server. A connection whose next request is
 * not plain is handed to Node's HTTP server, which keeps it.
 */
import type { TLSSocket } from 'node:tls';
import { settledWithin } from '../../core/async/with-timeout.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { NewConnection } from '../../core/http/gated-server.ts';
import type { SocketTraffic } from '../backend-traffic.ts';
import type { Dialer } from '../forward/dial.ts';
import { BackendConnections } from './backend-connections.ts';
import { ClientConnection } from './client-connection.ts';
import type { ExchangeDeps } from './exchange.ts';
import { Targets } from './target.ts';
import type { TargetDeps } from './target.ts';

/** How often silent connections are checked: there is no timer for each. */
const sweepMs = 1_000;

interface Deps extends Omit<ExchangeDeps, 'backends' | 'isClosing'>, TargetDeps {
  readonly clock: Clock;
  readonly dialer: Dialer;
}

export class PlainProxy implements Disposable {
  readonly #deps: Deps;
  readonly #backends: BackendConnections;
  readonly #clients = new Set<ClientConnection>();
  readonly #sweep: Disposable;
  #isClosing = false;
  #onIdle: (() => void) | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#backends = new BackendConnections(deps);
    this.#sweep = deps.clock.every(sweepMs, () => this.#closeSilent());
  }

  /** Handles a new connection. */
  accept(connection: NewConnection): void {
    const { remoteAddress } = connection.socket;
    const isEncrypted = (connection.socket as Partial<TLSSocket>).encrypted === true;
    const targets = new Targets(this.#deps, { remoteAddress, isEncrypted });
    const client = new ClientConnection(connection, targets, {
      ...this.#deps,
      backends: this.#backends,
      isClosing: () => this.#isClosing,
      onGone: (gone) => {
        this.#clients.delete(gone);
        this.#onIdle?.();
      },
    });
    this.#clients.add(client);
  }

  /** The open requests, each with its backend and the traffic of its client's connection. */
  *requests(): Generator<[backend: string, connection: SocketTraffic]> {
    for (const { backend, channel } of this.#clients) if (backend !== undefined) yield [backend, channel];
  }

  /** Closes the connections of a backend that has ended: idle ones at once, others after a grace period. */
  drop(backend: string): void {
    this.#backends.drop(backend);
  }

  /** Hands over new requests, waits up to `limitMs` for open ones, then closes their connections. */
  async drain(limitMs: number): Promise<void> {
    this.#isClosing = true;
    const idle = Promise.withResolvers<void>();
    this.#onIdle = () => {
      if (![...this.#clients].some(({ isBusy }) => isBusy)) idle.resolve();
    };
    this.#onIdle();
    await settledWithin({ clock: this.#deps.clock, ms: limitMs }, () => idle.promise);
    for (const client of this.#clients) if (client.isBusy) client.destroy();
  }

  [Symbol.dispose](): void {
    this.#sweep[Symbol.dispose]();
    this.#backends[Symbol.dispose]();
  }

  #closeSilent(): void {
    const nowMs = this.#deps.clock.now().getTime();
    for (const client of this.#clients) client.closeIfSilent(nowMs);
  }
}
