import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:tls';
import type { Server, TLSSocket } from 'node:tls';
import type { Clock } from '../clock/clock.ts';
import type { PlatformSecret } from '../secret/platform-secret.ts';
import { linkIdentity, linkKey, linkSocketTerms, linkTerms } from './link-terms.ts';

/** A link that another process has made. Half of it may end before the other. */
export interface IncomingLink {
  readonly socket: TLSSocket;
  /** Breaks it off such that the other process sees an error, not an end: half an answer must not look whole. */
  reset(): void;
}

export interface LinkServerOptions {
  readonly secret: PlatformSecret;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly clock: Clock;
  /** Is handed every link whose other end has proved that it has the secret. */
  readonly onConnection: (link: IncomingLink) => void;
}

/** A server for links. Disposing it stops listening and breaks off every link. */
export interface LinkServer extends AsyncDisposable {
  readonly port: number;
}

/** A handshake takes milliseconds of work and two ways through the network; a longer one comes from nobody of ours. */
export const handshakeLimitMs = 5_000;

/**
 * Many more than all proxies begin at once after a restart. When there are more, the oldest goes: a stranger who opens
 * connections and says nothing holds nobody of ours up.
 */
export const maxHandshakes = 256;

/** Listens for links. Throws what `listen` fails with. */
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
  server.on('secureConnection', (socket) => incoming.prove(socket));
  // Strangers, and links that were given up: their connection is closed already, and there is nothing else to do.
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

/** A connection under a link, with the time that is left for its handshake. */
interface Connection {
  readonly socket: Socket;
  readonly limit: Disposable;
}

/** Every connection to the server, by its other end. */
class Incoming {
  readonly #options: LinkServerOptions;
  readonly #all = new Map<string, Connection>();
  /** Those whose handshake is not over, oldest first. */
  readonly #unproved = new Set<Socket>();
  #isCut = false;

  constructor(options: LinkServerOptions) {
    this.#options = options;
  }

  begin(socket: Socket): void {
    if (this.#isCut) {
      socket.destroy();
      return;
    }
    // What breaks it comes up in the link.
    socket.on('error', () => {});
    const [oldest] = this.#unproved;
    if (oldest && this.#unproved.size >= maxHandshakes) oldest.destroy();
    const limit = this.#options.clock.after(handshakeLimitMs, () => socket.destroy());
    const end = otherEnd(socket);
    this.#all.set(end, { socket, limit });
    this.#unproved.add(socket);
    socket.once('close', () => {
      limit[Symbol.dispose]();
      this.#unproved.delete(socket);
      if (this.#all.get(end)?.socket === socket) this.#all.delete(end);
    });
  }

  prove(socket: TLSSocket): void {
    const connection = this.#all.get(otherEnd(socket));
    socket.on('error', () => {});
    if (!connection) {
      socket.destroy();
      return;
    }
    connection.limit[Symbol.dispose]();
    this.#unproved.delete(connection.socket);
    this.#options.onConnection({ socket, reset: () => reset(connection.socket) });
  }

  cut(): void {
    this.#isCut = true;
    for (const { socket } of this.#all.values()) reset(socket);
  }
}

function otherEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}
