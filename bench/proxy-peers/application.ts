/** The part of the backend that accepts upgrades, and echoes every byte. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** The key of all handshakes, and the server's answer to it (RFC 6455, section 1.3). */
const key = 'dGhlIHNhbXBsZSBub25jZQ==';
const acceptance = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';

/** A server in this process. */
export interface Application extends AsyncDisposable {
  readonly port: number;
}

export async function openApplication(): Promise<Application> {
  const server = createServer();
  const sockets = new Set<Socket>();
  server.on('upgrade', (_request, socket) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${acceptance}\r\n\r\n`,
    );
    socket.on('error', () => {}).on('data', (bytes) => socket.write(bytes));
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A small message of a chat or a drawing. */
const message = Buffer.alloc(64, 'x');

/** Sends messages over upgraded connections, each after the echo of the previous message. Returns the number of echoes. */
export async function roundTrips(
  url: URL,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<number> {
  const sockets = await Promise.all(Array.from({ length: connections }, async () => await upgraded(url)));
  let count = 0;
  for (const socket of sockets) {
    let missing = message.length;
    socket
      .on('error', () => {})
      .on('data', ({ length }: Buffer) => {
        missing -= length;
        if (missing > 0) return;
        missing = message.length;
        count += 1;
        socket.write(message);
      });
    socket.write(message);
  }
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  for (const socket of sockets) socket.destroy();
  return count;
}

export async function upgraded({ hostname, port, pathname }: URL): Promise<Socket> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const fields = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
  ];
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n${fields.join('\r\n')}\r\n\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  if (!head.toString().startsWith('HTTP/1.1 101')) throw new Error(`No upgrade:\n${head.toString()}`);
  return socket;
}
