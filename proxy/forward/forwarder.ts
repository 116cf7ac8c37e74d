/** Forwards requests to backends, and their answers to clients. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../core/clock/clock.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import type { Address } from '../lookup.ts';
import type { OutgoingHeaders } from '../request-headers.ts';
import type { SessionView } from '../session-view.ts';
import type { Dialer } from './dial.ts';
import { HttpProxy } from './http-proxy.ts';
import { endedGraceMs, Pools } from './pools.ts';
import { forwardUpgrade } from './upgrade.ts';

/** A request to a backend. */
export interface Destination {
  readonly backend: string;
  readonly address: Address;
  /** How the client sees the session. */
  readonly view: SessionView;
  /** The request target, byte for byte. */
  readonly path: string;
  readonly headers: OutgoingHeaders;
}

/** A client that asked for an upgrade. */
export interface Upgrading {
  readonly socket: Duplex;
  /** The bytes that arrived after the request. */
  readonly head: Buffer;
  /** Rejects the upgrade. */
  readonly response: ServerResponse;
}

interface ForwarderDeps {
  readonly clock: Clock;
  readonly dialer: Dialer;
  readonly errorBoundary: ErrorBoundary;
}

/**
 * `web` and `upgrade` resolve when the answer has begun or the client has disconnected. From then on, each side is destroyed with
 * the other. They throw `backend-unreachable` if nothing was sent to the client, and `bad-request` if the request cannot be sent.
 */
export class Forwarder implements Disposable {
  readonly #deps: ForwarderDeps;
  readonly #pools: Pools;
  readonly #plain: HttpProxy;
  /** Both ends of every upgraded connection, by backend. */
  readonly #upgraded = new Map<string, Set<Duplex>>();

  constructor(deps: ForwarderDeps) {
    this.#deps = deps;
    this.#pools = new Pools(deps);
    this.#plain = new HttpProxy(this.#pools, deps.errorBoundary);
  }

  /** Forwards a plain request. */
  web(request: IncomingMessage, response: ServerResponse, to: Destination): Promise<void> {
    return this.#plain.forward(request, response, to);
  }

  /** Forwards a request that asks for an upgrade. */
  async upgrade(request: IncomingMessage, client: Upgrading, to: Destination): Promise<void> {
    const onUpgraded = (sockets: readonly Duplex[]) => {
      for (const socket of sockets) this.#track(to.backend, socket);
    };
    await forwardUpgrade(request, client, to, { ...this.#deps, onUpgraded });
  }

  /** Closes the idle connections of a backend that has ended now, and those in use after a grace period. */
  drop(backend: string): void {
    this.#pools.drop(backend);
    const sockets = this.#upgraded.get(backend);
    if (sockets) this.#deps.clock.after(endedGraceMs, () => destroyAll(sockets));
  }

  /** Destroys every upgraded connection. */
  cutUpgraded(): void {
    for (const sockets of this.#upgraded.values()) destroyAll(sockets);
  }

  [Symbol.dispose](): void {
    this.cutUpgraded();
    this.#pools[Symbol.dispose]();
  }

  #track(backend: string, socket: Duplex): void {
    const sockets = this.#upgraded.get(backend) ?? new Set();
    this.#upgraded.set(backend, sockets.add(socket));
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0 && this.#upgraded.get(backend) === sockets) this.#upgraded.delete(backend);
    });
  }
}

function destroyAll(sockets: Set<Duplex>): void {
  for (const socket of sockets) socket.destroy();
}
