/** Opening and closing an HTTP server in order. */
import type { Server, ServerOptions } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { createServer } from './node-http.ts';
import type { SecureContexts } from '../tls/secure-contexts.ts';

export interface ListenOptions {
  readonly host: string;
  /** 0: a free port. */
  readonly port: number;
  /** Whether other threads listen on the same port, too; the kernel distributes the connections. Linux only. Default: no. */
  readonly reusePort?: boolean;
  /** How long closing waits for open requests before it closes their connections, in milliseconds. */
  readonly drainMs?: number;
  /** Connections of the server that its events do not show. */
  readonly otherConnections?: ClosableConnections | undefined;
}

/** Connections that are closed with a listener. */
export interface ClosableConnections {
  /** Closes idle connections, and from now on each connection that becomes idle. */
  closeIdle(): void;
  closeAll(): void;
}

/** A server that listens. Disposing it stops listening, waits for open requests for a while, then closes all connections. */
export interface Listener extends AsyncDisposable {
  readonly server: Server;
  readonly port: number;
}

/** Long enough for ordinary requests. Streams that do not end are cut off. */
const defaultDrainMs = 5_000;

/** The maximum time for the head of a request. A slower client is an attacker (slowloris) or dead. */
export const headersTimeoutMs = 20_000;

/** The maximum time between two requests on a connection. Load balancers keep connections for up to a minute. */
export const keepAliveTimeoutMs = 65_000;

/** A server without the time-out for whole requests, which would cut slow uploads of large layers (Node's default: 300 s). */
export function newServer(options: ServerOptions = {}, tls?: TlsOptions): Server {
  const timeouts = { requestTimeout: 0, headersTimeout: headersTimeoutMs, keepAliveTimeout: keepAliveTimeoutMs };
  if (!tls) return createServer({ ...timeouts, ...options });
  const { contexts, protocols } = tls;
  const server = createSecureServer({
    ...timeouts,
    ...options,
    ...contexts.serverOptions,
    ALPNProtocols: [...protocols],
    handshakeTimeout: headersTimeoutMs,
  });
  contexts.follow(server);
  // Otherwise a failed handshake would be answered as a malformed request, on a connection that cannot carry an answer.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (_error, socket) => void socket.destroy());
  return server;
}

/** The TLS settings of a server. */
export interface TlsOptions {
  readonly contexts: SecureContexts;
  /** The protocols that clients may choose from. */
  readonly protocols: readonly ('h2' | 'http/1.1')[];
}

/** The event of a server with a new connection on which requests may arrive. */
export function connectionEvent(server: Server): 'connection' | 'secureConnection' {
  return server instanceof TlsServer ? 'secureConnection' : 'connection';
}

/** Whether the client of a connection has chosen HTTP/2. */
export function isHttp2(socket: Socket): socket is TLSSocket {
  return (socket as Partial<TLSSocket>).alpnProtocol === 'h2';
}

const connectionsOf = new WeakMap<Server, OpenConnections>();

/**
 * Counts a request that Node's HTTP server does not see, when it begins (1) and when it has ended (-1), so that closing the listener
 * waits for it.
 */
export function countRequest(server: Server, socket: Duplex, change: 1 | -1): void {
  connectionsOf.get(server)?.count(socket, change);
}

/** Starts listening. Rejects with the error of `listen`; the message of `EADDRINUSE` contains the port. */
export async function listen(server: Server, options: ListenOptions): Promise<Listener> {
  const connections = new OpenConnections(server);
  connectionsOf.set(server, connections);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const { host, port, reusePort = false } = options;
    server.listen({ host, port, reusePort }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  let closing: Promise<void> | undefined;
  const all = [connections, ...(options.otherConnections ? [options.otherConnections] : [])];
  const close = () => (closing ??= drain(server, all, options.drainMs ?? defaultDrainMs));
  return { server, port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

async function drain(server: Server, connections: readonly ClosableConnections[], drainMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const each of connections) each.closeIdle();
  const cut = setTimeout(() => {
    for (const each of connections) each.closeAll();
  }, drainMs);
  await closed;
  clearTimeout(cut);
}

/**
 * The connections of a server, with the number of open requests of each. Node's own `closeIdleConnections` does not close
 * connections without a first request, which browsers and Node's `fetch` open in advance.
 */
class OpenConnections implements ClosableConnections {
  readonly #busy = new Map<Duplex, { requests: number }>();
  /** With TLS, the TCP connections below, also before the handshake. */
  readonly #tcpConnections = new Set<Duplex>();
  #closeWhenIdle = false;

  constructor(server: Server) {
    const event = connectionEvent(server);
    const busy = this.#busy;
    // One function for all connections: one for each would be a large part of the memory of an idle WebSocket.
    const onClose = function (this: Duplex) {
      busy.delete(this);
    };
    server.on(event, (socket: Socket) => {
      if (isHttp2(socket)) return;
      busy.set(socket, { requests: 0 });
      socket.on('close', onClose);
    });
    if (event !== 'connection') {
      server.on('connection', (socket) => {
        this.#tcpConnections.add(socket);
        socket.once('close', () => this.#tcpConnections.delete(socket));
      });
    }
    server.on('request', ({ socket }, response) => {
      this.count(socket, 1);
      // `close` is emitted once. A listener that removes itself would cost more.
      response.on('close', () => this.count(socket, -1));
    });
    // An upgraded connection is busy until it closes. A listener for upgrades changes how Node handles them, so it is added only if needed.
    if (server.listenerCount('upgrade') > 0) server.on('upgrade', (_request, socket) => this.count(socket, 1));
  }

  /** Closes idle connections, and from now on each connection that becomes idle. */
  closeIdle(): void {
    this.#closeWhenIdle = true;
    for (const socket of this.#busy.keys()) this.count(socket, 0);
  }

  closeAll(): void {
    for (const socket of [...this.#busy.keys(), ...this.#tcpConnections]) socket.destroy();
  }

  /** Adds to the open requests of a connection. */
  count(socket: Duplex, change: number): void {
    const open = this.#busy.get(socket) ?? { requests: 0 };
    open.requests += change;
    if (open.requests === 0 && this.#closeWhenIdle) socket.destroy();
  }
}
