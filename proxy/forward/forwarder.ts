/** Forwards requests to backends, and their answers to clients. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../core/clock/clock.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import type { Address } from '../lookup.ts';
import type { OutgoingHeaders } from '../request-headers.ts';
import type { SessionView } from '../session-view.ts';
import type { Dialer } from './dial.ts';
import { endedGraceMs, Pools } from './pools.ts';
import type { Splice, SpliceOwner, SpliceUser } from './splice.ts';
import { forwardUpgrade } from './upgrade.ts';
import { forwardWeb } from './web.ts';

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
  /** Called when the connections of the client and of the backend are joined. Returns their callbacks. */
  readonly onJoined: () => SpliceUser;
}

interface ForwarderDeps {
  readonly clock: Clock;
  readonly dialer: Dialer;
  readonly errorBoundary: ErrorBoundary;
  /** After this much silence, the client of a WebSocket gets a Ping, which it must answer within the same time. 0: never. */
  readonly webSocketPingMs: number;
}

/**
 * `web` and `upgrade` resolve when the answer has begun or the client has disconnected. From then on, each side is destroyed with
 * the other. They throw `backend-unreachable` if nothing was sent to the client, and `bad-request` if the request cannot be sent.
 */
export class Forwarder implements Disposable {
  readonly #deps: ForwarderDeps;
  readonly #pools: Pools;
  /** Every upgraded connection, by backend. */
  readonly #upgraded = new Map<string, Set<Splice>>();
  readonly #owner: SpliceOwner;
  readonly #periods: Disposable | undefined;
  #isClosing = false;

  constructor(deps: ForwarderDeps) {
    this.#deps = deps;
    this.#pools = new Pools(deps);
    this.#owner = { errorBoundary: deps.errorBoundary, onClosed: (splice) => this.#untrack(splice) };
    // One timer for all connections.
    if (deps.webSocketPingMs > 0) this.#periods = deps.clock.every(deps.webSocketPingMs, () => this.#endPeriod());
  }

  /** Forwards a plain request. */
  async web(request: IncomingMessage, response: ServerResponse, to: Destination): Promise<void> {
    await forwardWeb(request, response, to, { pools: this.#pools, errorBoundary: this.#deps.errorBoundary });
  }

  /** Forwards a request that asks for an upgrade. */
  async upgrade(request: IncomingMessage, client: Upgrading, to: Destination): Promise<void> {
    const onUpgraded = (splice: Splice) => this.#track(splice);
    await forwardUpgrade(request, client, to, { ...this.#deps, owner: this.#owner, onUpgraded });
  }

  /** Closes the connections of a backend that has ended: idle ones at once, others after a grace period. */
  drop(backend: string): void {
    this.#pools.drop(backend);
    const splices = this.#upgraded.get(backend);
    if (splices) this.#deps.clock.after(endedGraceMs, () => destroyAll(splices));
  }

  /** Closes every open and every later WebSocket with a code that asks clients to connect again. */
  closeUpgraded(): void {
    this.#isClosing = true;
    for (const splices of this.#upgraded.values()) for (const splice of splices) askToReconnect(splice);
  }

  /** Destroys every upgraded connection. */
  destroyUpgraded(): void {
    for (const splices of this.#upgraded.values()) destroyAll(splices);
  }

  [Symbol.dispose](): void {
    this.#periods?.[Symbol.dispose]();
    this.destroyUpgraded();
    this.#pools[Symbol.dispose]();
  }

  #track(splice: Splice): void {
    const { backendId } = splice;
    const splices = this.#upgraded.get(backendId) ?? new Set();
    this.#upgraded.set(backendId, splices.add(splice));
    if (this.#isClosing) askToReconnect(splice);
  }

  #untrack(splice: Splice): void {
    const { backendId } = splice;
    const splices = this.#upgraded.get(backendId);
    splices?.delete(splice);
    if (splices?.size === 0) this.#upgraded.delete(backendId);
  }

  #endPeriod(): void {
    for (const splices of this.#upgraded.values()) for (const splice of splices) splice.endPeriod();
  }
}

/** "Service Restart" (RFC 6455, IANA registry of close codes): the client may connect again. */
const serviceRestart = 1012;

function askToReconnect(splice: Splice): void {
  splice.close(serviceRestart, 'The proxy is restarting');
}

function destroyAll(splices: Set<Splice>): void {
  for (const splice of splices) splice.destroy();
}
