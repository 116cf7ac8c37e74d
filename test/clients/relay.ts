/** A relay between client and registry, over TCP or TLS, that a test can block. */
import { once } from 'node:events';
import { createServer as createTcpServer, connect } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

export interface Relay extends AsyncDisposable {
  readonly port: number;
  /** Sets the port of 127.0.0.1 to which it connects. */
  forwardTo(port: number): void;
  /** Stops forwarding when this number of bytes has arrived from clients, and resolves then. */
  blockAfter(bytes: number): Promise<void>;
  /** Closes the open connections, and forwards new ones again. */
  unblock(): void;
}

/** Listens on an address. With a certificate, clients speak TLS to it. */
export async function openRelay(
  address: string,
  tls?: { readonly key: Buffer; readonly cert: Buffer },
): Promise<Relay> {
  const traffic = new Traffic();
  const server: Server = tls
    ? createTlsServer(tls, (socket) => traffic.relay(socket))
    : createTcpServer((socket) => traffic.relay(socket));
  server.listen(0, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    forwardTo: (port) => (traffic.target = port),
    blockAfter: async (bytes) => await traffic.blockAfter(bytes),
    unblock: () => traffic.unblock(),
    [Symbol.asyncDispose]: async () => {
      traffic.cut();
      server.close();
      await once(server, 'close');
    },
  };
}

class Traffic {
  target = 0;
  readonly #sockets = new Set<Socket>();
  #left = Infinity;
  #onBlocked = () => {};

  relay(client: Socket): void {
    const registry = connect(this.target, '127.0.0.1');
    this.#sockets.add(client).add(registry);
    // The client reports its own errors.
    client
      .on('error', () => {})
      .on('close', () => {
        this.#sockets.delete(client);
        registry.destroy();
      });
    registry.on('error', () => client.destroy()).on('close', () => this.#sockets.delete(registry));
    registry.pipe(client);
    client.on('data', (bytes) => this.#forward(bytes, client, registry));
    client.on('end', () => registry.end());
  }

  async blockAfter(bytes: number): Promise<void> {
    this.#left = bytes;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onBlocked = resolve;
    await promise;
  }

  unblock(): void {
    this.#left = Infinity;
    this.cut();
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #forward(bytes: Buffer, client: Socket, registry: Socket): void {
    this.#left -= bytes.length;
    if (this.#left <= 0) {
      client.pause();
      this.#onBlocked();
    } else if (!registry.write(bytes)) {
      client.pause();
      registry.once('drain', () => client.resume());
    }
  }
}
