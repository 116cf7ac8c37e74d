/** Opening and closing an HTTP server in order. */
import { createServer } from 'node:http';
import type { Server, ServerOptions } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

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

/** How soon after its last answer a kept-alive connection of a closing server is closed. */
const closeIdleEveryMs = 50;

/** A head that takes longer than this to arrive is an attack (slowloris) or a dead peer. */
const headersTimeoutMs = 20_000;

/** A server without the time-out for whole requests, which would cut slow uploads of large layers (Node's default: 300 s). */
export function newServer(options: ServerOptions = {}): Server {
  return createServer({ requestTimeout: 0, headersTimeout: headersTimeoutMs, keepAliveTimeout: 65_000, ...options });
}

/** Starts listening. Throws what `listen` fails with (`EADDRINUSE` names the port in its message). */
export async function listen(server: Server, options: ListenOptions): Promise<Listener> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= drain(server, sockets, options.drainMs ?? defaultDrainMs));
  return { server, port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

async function drain(server: Server, sockets: Set<Socket>, drainMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A kept-alive connection whose last request ends while we wait becomes idle: close those too, as they come.
  const idle = setInterval(() => server.closeIdleConnections(), closeIdleEveryMs);
  const cut = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, drainMs);
  await closed;
  clearTimeout(cut);
  clearInterval(idle);
  // Upgraded sockets are no longer the server's: nobody else closes them.
  for (const socket of sockets) socket.destroy();
}
