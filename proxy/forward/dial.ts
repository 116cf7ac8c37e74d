/** Connects to backends: directly if this process reaches their address, otherwise through the gateway of their node. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { request as send } from '../../core/http/node-http.ts';
import { readAfterFailedWrite } from '../../core/http/read-after-failed-write.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import { linkConnect } from '../../core/link/link-client.ts';
import type { PlatformSecret } from '../../core/secret/platform-secret.ts';
import type { NodeGateway } from '../../model/node.ts';
import type { Address, Lookup } from '../lookup.ts';
import type { Destination } from './forwarder.ts';

/** A backend or gateway in the same data centre accepts a connection within milliseconds, unless its machine is down. */
export const connectLimitMs = 5_000;

export interface DialDeps {
  /** The node whose containers this process reaches by their address. */
  readonly localNode: string | undefined;
  readonly secret: PlatformSecret;
  readonly clock: Clock;
  readonly log: Log;
  readonly lookup: Pick<Lookup, 'gateway' | 'refreshGateway'>;
}

/** A backend and its address. */
export type Dialled = Pick<Destination, 'backend' | 'address'>;

export class Dialer {
  readonly #deps: DialDeps;
  /** Nodes for which the warning about a missing gateway was logged. */
  readonly #warned = new Set<string>();

  constructor(deps: DialDeps) {
    this.#deps = deps;
  }

  /** Whether the address belongs to another node than this process. */
  isOnOtherNode(address: Address): address is Required<Address> {
    return address.node !== undefined && address.node !== this.#deps.localNode;
  }

  /**
   * Connects to a backend. The connection ends its side when the backend has ended its own. Rejects if the backend cannot be
   * reached, with `unavailable` if the store cannot be read, and with the signal's reason.
   */
  async dial({ backend, address }: Dialled, signal: AbortSignal): Promise<Socket> {
    const { lookup } = this.#deps;
    if (!this.isOnOtherNode(address)) return await this.#withTimeout(signal, (limit) => connectTo(address, limit));
    const { node } = address;
    const gateway = await lookup.gateway(node);
    if (!gateway) return await this.#withoutGateway(address, signal);
    try {
      return await this.#through(gateway, backend, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // The gateway may have restarted on another port, and the entry may be out of date.
      const newer = await lookup.refreshGateway(node);
      if (!newer || (newer.host === gateway.host && newer.port === gateway.port)) throw error;
      return await this.#through(newer, backend, signal);
    }
  }

  /** Connects directly to a node without a gateway, which is this machine unless `localNode` names the node of this machine. */
  async #withoutGateway(address: Required<Address>, signal: AbortSignal): Promise<Socket> {
    try {
      if (this.#deps.localNode !== undefined) throw new Error('The node of the backend has no gateway');
      return await this.#withTimeout(signal, (limit) => connectTo(address, limit));
    } catch (error) {
      if (!signal.aborted) this.#warn(address.node);
      throw error;
    }
  }

  /** Warns once for each node, because only the operator can solve the problem, and clients do not see the reason. */
  #warn(node: string): void {
    if (this.#warned.has(node)) return;
    this.#warned.add(node);
    this.#deps.log.warn(
      { node },
      'A backend cannot be reached, and its node has no gateway: unless that node is this machine, set BERTH_ADVERTISED_HOST on it to the name or address by which this machine reaches it',
    );
  }

  #through({ host, port }: NodeGateway, backend: string, signal: AbortSignal): Promise<Socket> {
    const { secret } = this.#deps;
    return this.#withTimeout(signal, async (limit) => {
      return await openTunnel(await linkConnect({ secret, host, port, signal: limit }), backend, limit);
    });
  }

  async #withTimeout<T>(signal: AbortSignal, make: (limit: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    using _limit = this.#deps.clock.after(connectLimitMs, () => late.abort(new Error('The connection timed out')));
    return await make(AbortSignal.any([signal, late.signal]));
  }
}

async function connectTo({ host, port }: Address, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect({ host, port, noDelay: true });
  return await prepared(socket, () => once(socket, 'connect', { signal }), signal);
}

/** Turns a link to a gateway into a connection to a backend. */
async function openTunnel(link: Socket, backend: string, signal: AbortSignal): Promise<Socket> {
  const open = async () => {
    const headers = { host: backend };
    const request = send({ method: 'CONNECT', path: backend, headers, createConnection: () => link });
    request.on('error', () => {});
    request.end();
    const [answer, , head] = (await once(request, 'connect', { signal })) as [IncomingMessage, Socket, Buffer];
    if (answer.statusCode !== 200) throw new Error(`The gateway of the node answered ${answer.statusCode}`);
    if (head.length > 0) link.unshift(head);
  };
  return await prepared(link, open, signal);
}

/** Returns the socket when `prepare` has succeeded, or destroys it. */
async function prepared(socket: Socket, prepare: () => Promise<unknown>, signal: AbortSignal): Promise<Socket> {
  // Until the socket is used, nothing else listens for errors.
  socket.on('error', () => {});
  try {
    await prepare();
    return readAfterFailedWrite(socket);
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? (signal.reason as Error) : error;
  }
}
