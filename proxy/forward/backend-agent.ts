import type { AgentOptions, ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Agent } from '../../core/http/node-http.ts';

/** Makes a connection to the agent's backend. */
export type Dial = (signal: AbortSignal) => Promise<Socket>;

/** How long a new connection waits for a request, if its own request used another connection in the meantime. */
const readyMs = 1_500;

/**
 * The connections to one backend. A connection through a gateway is dialled before its request is created, because http-proxy-3
 * loses trailers and a part of the path of requests that wait for their connection.
 */
export class BackendAgent extends Agent {
  readonly #dial: Dial | undefined;
  readonly #keepsAlive: boolean;
  readonly #ready = new Set<Socket>();
  readonly #closing = new AbortController();
  #dialling = 0;

  /** @param dial - `undefined`: connections are made directly to the host and port of each request */
  constructor(options: AgentOptions, dial: Dial | undefined) {
    super(options);
    this.#keepsAlive = options.keepAlive === true;
    this.#dial = dial;
  }

  /** Whether `prepare` must be called before the next request. */
  get needsDialling(): boolean {
    return this.#dial !== undefined && this.#ready.size === 0 && !(this.#keepsAlive && isAnyOpen(this.freeSockets));
  }

  /** Makes a connection for a request that is created as soon as this resolves. Rejects as `Dialer.dial`. */
  async prepare(signal: AbortSignal): Promise<void> {
    if (!this.#dial) return;
    this.#dialling += 1;
    try {
      const socket = await this.#dial(AbortSignal.any([signal, this.#closing.signal]));
      this.#ready.add(socket);
      socket.setTimeout(readyMs, () => {
        if (this.#ready.has(socket)) socket.destroy();
      });
      socket.once('close', () => this.#ready.delete(socket));
    } finally {
      this.#dialling -= 1;
    }
  }

  /** Whether the agent has a connection or makes one. */
  get isInUse(): boolean {
    if (this.#dialling > 0 || this.#ready.size > 0) return true;
    return [this.sockets, this.freeSockets, this.requests].some((each) => Object.keys(each).length > 0);
  }

  /** Closes the connections that no request uses. */
  closeIdle(): void {
    for (const socket of this.#ready) socket.destroy();
    for (const sockets of Object.values(this.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    if (!this.#dial) return super.createConnection(options, callback);
    const [socket] = this.#ready;
    if (!socket) {
      callback?.(new Error('The request was created before its connection'), null as never);
      return undefined;
    }
    this.#ready.delete(socket);
    return socket;
  }

  override destroy(): void {
    this.#closing.abort(new Error('The connections to the backend are closed'));
    for (const socket of this.#ready) socket.destroy();
    super.destroy();
  }
}

function isAnyOpen(sockets: NodeJS.ReadOnlyDict<Socket[]>): boolean {
  return Object.values(sockets).some((each) => each?.some(({ destroyed }) => !destroyed));
}
