/** How a connection to a backend is made: straight, where this process reaches its address, else through its node's gateway. */
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import { linkConnect } from '../../core/link/link-connect.ts';
import type { PlatformSecret } from '../../core/secret/platform-secret.ts';
import type { NodeGateway } from '../../model/node.ts';
import type { Address, Lookup } from '../lookup.ts';
import type { Destination } from './forwarder.ts';

/** A backend is in the same fixture, or its node in the next one: they answer in milliseconds, or the machine is gone. */
export const connectLimitMs = 5_000;

export interface DialDeps {
  /** The node whose containers this process reaches by their address. */
  readonly localNode: string | undefined;
  readonly secret: PlatformSecret;
  readonly clock: Clock;
  readonly log: Log;
  readonly lookup: Pick<Lookup, 'gateway' | 'refreshGateway'>;
}

/** Which backend, and where it is. */
export type Dialled = Pick<Destination, 'backend' | 'address'>;

export class Dialer {
  readonly #deps: DialDeps;
  readonly #told = new Set<string>();

  constructor(deps: DialDeps) {
    this.#deps = deps;
  }

  /** Whether a connection to the address needs nobody's help: there is no need to `dial`. */
  isStraight({ node }: Address): boolean {
    return node === undefined || node === this.#deps.localNode;
  }

  /**
   * Makes a connection to a backend, wherever it is. It ends its side when the backend has ended its own. Rejects if the
   * backend cannot be reached, with `unavailable` if nobody knows where its node is, or with the signal's reason.
   */
  async dial({ backend, address }: Dialled, signal: AbortSignal): Promise<Socket> {
    const { lookup } = this.#deps;
    const { node } = address;
    const gateway = node === undefined ? undefined : await lookup.gateway(node);
    if (node === undefined || !gateway) return await this.#withoutGateway(address, signal);
    try {
      return await this.#through(gateway, backend, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // It may have begun anew elsewhere, with the news still on its way.
      const newer = await lookup.refreshGateway(node);
      if (!newer || (newer.host === gateway.host && newer.port === gateway.port)) throw error;
      return await this.#through(newer, backend, signal);
    }
  }

  /** Its node is this machine, if nothing says otherwise. */
  async #withoutGateway(address: Address, signal: AbortSignal): Promise<Socket> {
    const { localNode } = this.#deps;
    try {
      if (localNode !== undefined) throw new Error('The node of the backend has no gateway');
      return await this.#inTime(signal, (limit) => straight(address, limit));
    } catch (error) {
      if (!signal.aborted) this.#tellOf(address.node);
      throw error;
    }
  }

  /** Once for each node: who runs it has to do something, and whoever wanted the backend cannot know. */
  #tellOf(node: string | undefined): void {
    if (node === undefined || this.#told.has(node)) return;
    this.#told.add(node);
    this.#deps.log.warn(
      { node },
      'A backend cannot be reached, and its node has no gateway: unless that node is this machine, set BERTH_ADVERTISED_HOST on it to the name or address by which this machine reaches it',
    );
  }

  #through(gateway: NodeGateway, backend: string, signal: AbortSignal): Promise<Socket> {
    const { secret } = this.#deps;
    return this.#inTime(signal, async (limit) => {
      const link = await linkConnect({ secret, host: gateway.host, port: gateway.port, signal: limit });
      return await tunnel(link, backend, limit);
    });
  }

  async #inTime<T>(signal: AbortSignal, make: (limit: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    using _limit = this.#deps.clock.after(connectLimitMs, () => late.abort(new Error('Nobody takes the connection')));
    return await make(AbortSignal.any([signal, late.signal]));
  }
}

async function straight({ host, port }: Address, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  return await untilGiven(connect({ host, port }), (socket) => once(socket, 'connect', { signal }), signal);
}

/** Asks a gateway for a backend: what it makes of the link is a connection to the backend. */
async function tunnel(link: Socket, backend: string, signal: AbortSignal): Promise<Socket> {
  const ask = async () => {
    const headers = { host: backend };
    const request = send({ method: 'CONNECT', path: backend, headers, createConnection: () => link });
    request.on('error', () => {});
    request.end();
    const [answer, , head] = (await once(request, 'connect', { signal })) as [IncomingMessage, Socket, Buffer];
    if (answer.statusCode !== 200) throw new Error(`The gateway of the node answered ${answer.statusCode}`);
    if (head.length > 0) link.unshift(head);
  };
  return await untilGiven(link, ask, signal);
}

/** The socket, when what is done to it is done; if that fails, it is gone. */
async function untilGiven(
  socket: Socket,
  make: (socket: Socket) => Promise<unknown>,
  signal: AbortSignal,
): Promise<Socket> {
  // Between being made and being used, nobody else listens.
  socket.on('error', () => {});
  try {
    await make(socket);
    return socket;
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? (signal.reason as Error) : error;
  }
}
