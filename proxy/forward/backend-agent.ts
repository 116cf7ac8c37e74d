import type { AgentOptions, ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Agent } from '../../core/http/node-http.ts';
import { hasFailedWrite } from '../../core/http/read-after-failed-write.ts';

/** Makes a connection to the agent's backend. */
export type Dial = (signal: AbortSignal) => Promise<Socket>;

/** The connections to one backend. */
export class BackendAgent extends Agent {
  readonly #dial: Dial;
  readonly #closing = new AbortController();
  #dialling = 0;

  constructor(options: AgentOptions, dial: Dial) {
    super(options);
    this.#dial = dial;
  }

  /** Whether the agent has a connection or makes one. */
  get isInUse(): boolean {
    if (this.#dialling > 0) return true;
    return [this.sockets, this.freeSockets].some((each) => Object.keys(each).length > 0);
  }

  /** Closes the connections that no request uses. */
  closeIdle(): void {
    for (const sockets of Object.values(this.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  override createConnection(
    _options: ClientRequestArgs,
    callback: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    void this.#connect(callback);
  }

  async #connect(callback: (error: Error | null, stream: Duplex) => void): Promise<void> {
    this.#dialling += 1;
    try {
      callback(null, await this.#dial(this.#closing.signal));
    } catch (error) {
      callback(error as Error, null as never);
    } finally {
      this.#dialling -= 1;
    }
  }

  /** Returns whether the connection may carry another request, which Node's type does not say. */
  override keepSocketAlive(socket: Duplex): boolean {
    return !hasFailedWrite(socket) && (super.keepSocketAlive(socket) as unknown as boolean);
  }

  override destroy(): void {
    this.#closing.abort(new Error('The connections to the backend are closed'));
    super.destroy();
  }
}
