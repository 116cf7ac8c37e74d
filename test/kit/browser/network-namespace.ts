/**
 * A network namespace for Chromium. Chromium closes all its connections (ERR_NETWORK_CHANGED) when an address of its machine appears
 * or disappears, which happens with every network and container that other tests create. A namespace isolates Chromium from these
 * changes. It reaches the servers of this machine through a SOCKS 5 proxy, whose Unix socket both namespaces can open.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { socksPort } from './inside-namespace.ts';

export interface NetworkNamespace extends AsyncDisposable {
  /** A script that runs the program of `openNetworkNamespace` inside the namespace, with the arguments of the script. */
  readonly program: string;
  /** The proxy through which a program inside reaches `localhost`, its subdomains and 127.0.0.1 of this machine. */
  readonly proxy: string;
}

/** Whether this process may create network namespaces. */
export const canOpenNetworkNamespace = process.platform === 'linux' && process.getuid?.() === 0;

export async function openNetworkNamespace(program: string): Promise<NetworkNamespace> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'berth-browser-'));
  opening.defer(async () => await rm(folder, { recursive: true, force: true }));
  const socket = join(folder, 'socks.sock');
  const server = createServer((client) => {
    client.on('error', () => client.destroy());
    void serve(client).catch(() => client.destroy());
  });
  opening.defer(() => void server.close());
  await once(server.listen(socket), 'listening');
  const script = join(folder, 'chromium');
  const inside = fileURLToPath(new URL('inside-namespace.ts', import.meta.url));
  const words = ['unshare', '--net', process.execPath, inside, socket, program].map((word) => `'${word}'`);
  await writeFile(script, `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`);
  await chmod(script, 0o755);
  const owned = opening.move();
  return {
    program: script,
    proxy: `socks5://127.0.0.1:${socksPort}`,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Serves one connection as RFC 1928 describes, for the command CONNECT without authentication. */
async function serve(client: Socket): Promise<void> {
  const [, methods = 0] = await read(client, 2);
  await read(client, methods);
  client.write(Buffer.of(5, 0));
  const [, , , addressType] = await read(client, 4);
  const [length = 0] = addressType === 3 ? await read(client, 1) : [4];
  const address = await read(client, addressType === 4 ? 16 : length);
  const port = (await read(client, 2)).readUInt16BE();
  const host = addressType === 3 ? address.toString() : address.join('.');
  if (!/^(?:127\.0\.0\.1|(?:.+\.)?localhost)$/.test(host)) {
    client.end(reply(4));
    return;
  }
  const server = connect(port, '127.0.0.1');
  server.setNoDelay();
  try {
    await once(server, 'connect');
  } catch {
    client.end(reply(5));
    return;
  }
  client.write(reply(0));
  await pipeline(client, server, client);
}

/** A reply without the proxy's own address, which no client needs. */
function reply(code: number): Buffer {
  return Buffer.of(5, code, 0, 1, 0, 0, 0, 0, 0, 0);
}

async function read(client: Socket, size: number): Promise<Buffer> {
  for (;;) {
    const chunk = size === 0 ? Buffer.alloc(0) : (client.read(size) as Buffer | null);
    if (chunk?.length === size) return chunk;
    if (client.readableEnded) throw new Error('The client has disconnected');
    await once(client, 'readable');
  }
}
