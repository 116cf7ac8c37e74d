import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../core/clock/clock.ts';
import type { LastCatch } from '../../core/log/last-catch.ts';
import type { Dialer } from './dial.ts';
import type { Destination, Forwarder, Upgrading } from './forwarder.ts';
import { HttpProxy } from './http-proxy.ts';
import { endedGraceMs, Pools } from './pools.ts';
import { forwardUpgrade } from './upgrade.ts';
import type { Tied } from './upgrade.ts';

/** The forwarder that carries everything HTTP/1.1 has. */
export function generalForwarder(deps: ForwarderDeps): Forwarder {
  return new GeneralForwarder(deps);
}

interface ForwarderDeps {
  readonly clock: Clock;
  readonly dialer: Dialer;
  readonly caught: LastCatch;
}

class GeneralForwarder implements Forwarder {
  readonly #clock: Clock;
  readonly #dialer: Dialer;
  readonly #caught: LastCatch;
  readonly #pools: Pools;
  readonly #plain: HttpProxy;
  /** Both ends of every upgraded connection, by backend. */
  readonly #upgraded = new Map<string, Set<Duplex>>();

  constructor({ clock, dialer, caught }: ForwarderDeps) {
    this.#clock = clock;
    this.#dialer = dialer;
    this.#caught = caught;
    this.#pools = new Pools({ clock, dialer });
    this.#plain = new HttpProxy(this.#pools, caught);
  }

  web(request: IncomingMessage, response: ServerResponse, to: Destination): Promise<void> {
    return this.#plain.forward(request, response, to);
  }

  async upgrade(request: IncomingMessage, client: Upgrading, to: Destination): Promise<void> {
    const onTied = (tied: Tied) => {
      this.#keep(to.backend, tied.client);
      this.#keep(to.backend, tied.backend);
    };
    await forwardUpgrade(request, client, to, { dialer: this.#dialer, caught: this.#caught, onTied });
  }

  drop(backend: string): void {
    this.#pools.drop(backend);
    const sockets = this.#upgraded.get(backend);
    if (sockets) this.#clock.after(endedGraceMs, () => destroyAll(sockets));
  }

  cutUpgraded(): void {
    for (const sockets of this.#upgraded.values()) destroyAll(sockets);
  }

  [Symbol.dispose](): void {
    this.cutUpgraded();
    this.#pools[Symbol.dispose]();
  }

  #keep(backend: string, socket: Duplex): void {
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
