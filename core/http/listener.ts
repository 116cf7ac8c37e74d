/** Opening and closing an HTTP server in order. */
import { createServer } from 'node:http';
import type { Server, ServerOptions } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** How long `close` waits for open requests before it cuts them, in milliseconds. */
  readonly drainMs?: number;
}

/** A server that listens. Disposing it stops listening, lets open requests finish for a while, then cuts what is left. */
export interface Listener extends AsyncDisposable {
  readonly server: Server;
  readonly port: number;
}

/** Long enough for ordinary requests; streams that never end are cut. */
const defaultDrainMs = 5_000;

/** A head that takes longer than this to arrive is an attack (slowloris) or a dead peer. */
const headersTimeoutMs = 20_000;

/** A server without the time-out for whole requests, which would cut slow uploads of large layers (Node's default: 300 s). */
export function newServer(options: ServerOptions = {}): Server {
  return createServer({ requestTimeout: 0, headersTimeout: headersTimeoutMs, keepAliveTimeout: 65_000, ...options });
}

/** Starts listening. Throws what `listen` fails with (`EADDRINUSE` names the port in its message). */
export async function listen(server: Server, options: ListenOptions): Promise<Listener> {
  const connections = new OpenConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= drain(server, connections, options.drainMs ?? defaultDrainMs));
  return { server, port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

async function drain(server: Server, connections: OpenConnections, drainMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  connections.closeIdle();
  const cut = setTimeout(() => connections.closeAll(), drainMs);
  await closed;
  clearTimeout(cut);
}

/**
 * A server's connections, and how much is going on in each. Node's own `closeIdleConnections` leaves out those on which no
 * request has come yet, which browsers and Node's `fetch` open ahead.
 */
class OpenConnections {
  readonly #busy = new Map<Duplex, number>();
  #closeWhenIdle = false;

  constructor(server: Server) {
    server.on('connection', (socket) => {
      this.#busy.set(socket, 0);
      socket.once('close', () => this.#busy.delete(socket));
    });
    server.on('request', ({ socket }, response) => {
      this.#add(socket, 1);
      response.once('close', () => this.#add(socket, -1));
    });
    // An upgraded connection is busy to its end. Listening where nobody else does would change what Node does.
    if (server.listenerCount('upgrade') > 0) server.on('upgrade', (_request, socket) => this.#add(socket, 1));
  }

  /** Closes what is idle now, and from now on whatever becomes idle. */
  closeIdle(): void {
    this.#closeWhenIdle = true;
    for (const socket of this.#busy.keys()) this.#add(socket, 0);
  }

  closeAll(): void {
    for (const socket of this.#busy.keys()) socket.destroy();
  }

  #add(socket: Duplex, change: number): void {
    const busy = (this.#busy.get(socket) ?? 0) + change;
    if (this.#busy.has(socket)) this.#busy.set(socket, busy);
    if (busy === 0 && this.#closeWhenIdle) socket.destroy();
  }
}
