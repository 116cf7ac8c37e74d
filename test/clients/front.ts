/** A relay between client and registry, over TCP or TLS, that a test can block. */
import { once } from 'node:events';
import { createServer as createTcpServer, connect } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

export interface Front extends AsyncDisposable {
  readonly port: number;
  /** Sets the port of 127.0.0.1 to which it connects. */
  leadTo(port: number): void;
  /** Blocks after this many bytes from clients; resolves once they have passed. */
  stopAfter(bytes: number): Promise<void>;
  /** Cuts the open connections, and stops blocking new ones. */
  goOn(): void;
}

/** Listens on an address. With a certificate, clients speak TLS to it. */
export async function openFront(
  address: string,
  tls?: { readonly key: Buffer; readonly cert: Buffer },
): Promise<Front> {
  const traffic = new Traffic();
  const server: Server = tls
    ? createTlsServer(tls, (socket) => traffic.pass(socket))
    : createTcpServer((socket) => traffic.pass(socket));
  server.listen(0, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    leadTo: (port) => (traffic.target = port),
    stopAfter: async (bytes) => await traffic.stopAfter(bytes),
    goOn: () => traffic.goOn(),
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
  #onStopped = () => {};

  pass(client: Socket): void {
    const registry = connect(this.target, '127.0.0.1');
    this.#sockets.add(client).add(registry);
    // The client itself reports its errors.
    client
      .on('error', () => {})
      .on('close', () => {
        this.#sockets.delete(client);
        registry.destroy();
      });
    registry.on('error', () => client.destroy()).on('close', () => this.#sockets.delete(registry));
    registry.pipe(client);
    client.on('data', (bytes) => this.#hand(bytes, client, registry));
    client.on('end', () => registry.end());
  }

  async stopAfter(bytes: number): Promise<void> {
    this.#left = bytes;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onStopped = resolve;
    await promise;
  }

  goOn(): void {
    this.#left = Infinity;
    this.cut();
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #hand(bytes: Buffer, client: Socket, registry: Socket): void {
    this.#left -= bytes.length;
    if (this.#left <= 0) {
      client.pause();
      this.#onStopped();
    } else if (!registry.write(bytes)) {
      client.pause();
      registry.once('drain', () => client.resume());
    }
  }
}
