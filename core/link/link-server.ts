import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:tls';
import type { Server, TLSSocket } from 'node:tls';
import type { Clock } from '../clock/clock.ts';
import type { PlatformSecret } from '../secret/platform-secret.ts';
import { linkIdentity, linkKey, linkSocketTerms, linkTerms } from './link-terms.ts';

/** A link that another process opened. Each direction may end on its own. */
export interface IncomingLink {
  readonly socket: TLSSocket;
  /** Closes it so that the other process sees an error instead of an end: an incomplete answer must not look complete. */
  reset(): void;
}

export interface LinkServerOptions {
  readonly secret: PlatformSecret;
  readonly host: string;
  /** 0: a free port. */
  readonly port: number;
  readonly clock: Clock;
  /** Called with every link whose client has proved that it has the secret. */
  readonly onConnection: (link: IncomingLink) => void;
}

/** A server for links. Disposing it stops listening and resets every link. */
export interface LinkServer extends AsyncDisposable {
  readonly port: number;
}

/** The maximum time of a handshake. Processes of the platform need milliseconds and a round trip. */
export const handshakeLimitMs = 5_000;

/**
 * The maximum number of handshakes at a time, many more than all proxies begin at once after a restart. One more closes the oldest:
 * clients that connect and send nothing cannot lock out the platform's processes.
 */
export const maxHandshakes = 256;

/** Listens for links. Rejects with the error of `listen`. */
export async function openLinkServer(options: LinkServerOptions): Promise<LinkServer> {
  const key = linkKey(options.secret);
  const server = createServer({
    ...linkTerms,
    ...linkSocketTerms,
    allowHalfOpen: true,
    pskCallback: (_socket, identity) => (identity === linkIdentity ? key : null),
  });
  const incoming = new Incoming(options);
  server.on('connection', (connection) => incoming.begin(connection));
  server.on('secureConnection', (socket) => incoming.authenticate(socket));
  // Failed handshakes. Their connection is closed already.
  server.on('tlsClientError', () => {});
  await listening(server, options);
  let closing: Promise<void> | undefined;
  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    incoming.cut();
    await closed;
  };
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: () => (closing ??= close()) };
}

async function listening(server: Server, { host, port }: LinkServerOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, host, resolve);
  await promise;
  server.off('error', reject);
}

/** The connection under a link, with the timer of its handshake. */
interface Connection {
  readonly socket: Socket;
  readonly limit: Disposable;
}

/** All connections to the server, by the client's address and port. */
class Incoming {
  readonly #options: LinkServerOptions;
  readonly #all = new Map<string, Connection>();
  /** Connections whose handshake is in progress, oldest first. */
  readonly #handshaking = new Set<Socket>();
  #isCut = false;

  constructor(options: LinkServerOptions) {
    this.#options = options;
  }

  begin(socket: Socket): void {
    if (this.#isCut) {
      socket.destroy();
      return;
    }
    // The link reports its errors.
    socket.on('error', () => {});
    const [oldest] = this.#handshaking;
    if (oldest && this.#handshaking.size >= maxHandshakes) oldest.destroy();
    const limit = this.#options.clock.after(handshakeLimitMs, () => socket.destroy());
    const end = addressOf(socket);
    this.#all.set(end, { socket, limit });
    this.#handshaking.add(socket);
    socket.once('close', () => {
      limit[Symbol.dispose]();
      this.#handshaking.delete(socket);
      if (this.#all.get(end)?.socket === socket) this.#all.delete(end);
    });
  }

  authenticate(socket: TLSSocket): void {
    const connection = this.#all.get(addressOf(socket));
    socket.on('error', () => {});
    if (!connection) {
      socket.destroy();
      return;
    }
    connection.limit[Symbol.dispose]();
    this.#handshaking.delete(connection.socket);
    this.#options.onConnection({ socket, reset: () => reset(connection.socket) });
  }

  cut(): void {
    this.#isCut = true;
    for (const { socket } of this.#all.values()) reset(socket);
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}
