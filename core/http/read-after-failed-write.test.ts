import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../clock/system-clock.ts';
import { linkConnect } from '../link/link-client.ts';
import { openLinkServer } from '../link/link-server.ts';
import { PlatformSecret } from '../secret/platform-secret.ts';
import { readAfterFailedWrite } from './read-after-failed-write.ts';

interface Pair extends AsyncDisposable {
  readonly client: Socket;
  readonly server: { readonly socket: Socket; readonly reset: () => void };
}

async function openPair(): Promise<Pair> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const client = connect((listener.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(listener, 'connection')) as [Socket];
  await once(client, 'connect');
  const close = async () => {
    client.destroy();
    socket.destroy();
    await new Promise((resolve) => listener.close(resolve));
  };
  return { client, server: { socket, reset: () => socket.resetAndDestroy() }, [Symbol.asyncDispose]: close };
}

async function openLinkPair(): Promise<Pair> {
  const secret = new PlatformSecret(randomBytes(32));
  const { promise: accepted, resolve: onConnection } = Promise.withResolvers<Pair['server']>();
  const listener = await openLinkServer({ secret, host: '127.0.0.1', port: 0, clock: systemClock, onConnection });
  const { port } = listener;
  const client = await linkConnect({ secret, host: '127.0.0.1', port, signal: AbortSignal.timeout(30_000) });
  const server = await accepted;
  // The server's messages after the handshake.
  server.socket.write('first');
  await once(client, 'data');
  const close = async () => {
    client.destroy();
    await listener[Symbol.asyncDispose]();
  };
  return { client, server, [Symbol.asyncDispose]: close };
}

/** What the client receives and the code of its error, when the server sends bytes and a reset before the client writes. */
async function readAfterReset({ client, server }: Pair, sent: Buffer) {
  const received: Buffer[] = [];
  client.on('data', (chunk: Buffer) => received.push(chunk));
  const failed = once(client, 'error') as Promise<unknown> as Promise<[NodeJS.ErrnoException]>;
  const closed = new Promise((resolve) => client.once('close', resolve));
  server.socket.write(sent);
  server.reset();
  client.write('too late');
  client.write('and later');
  const [{ code }] = await failed;
  await closed;
  return { received: Buffer.concat(received).toString(), code };
}

const sent = Buffer.alloc(10_000, 'answer');

test.each([
  ['a connection', openPair],
  ['a link', openLinkPair],
])('%s whose other side has reset it is read to its end, and ends with the error', async (_name, open) => {
  await using ordinary = await open();
  expect(await readAfterReset(ordinary, sent)).toMatchObject({ received: '' });
  await using pair = await open();
  readAfterFailedWrite(pair.client);
  const { received, code } = await readAfterReset(pair, sent);
  expect(received).toBe(sent.toString());
  expect(['EPIPE', 'ECONNRESET']).toContain(code);
});

test('a paused connection is read to its end, too', async () => {
  await using pair = await openPair();
  const client = readAfterFailedWrite(pair.client).pause();
  const reading = readAfterReset({ ...pair, client }, sent);
  await expect.poll(() => client.readableLength).toBe(sent.length);
  // The reset is read after the bytes.
  await nextTurn();
  await nextTurn();
  client.resume();
  expect(await reading).toMatchObject({ received: sent.toString(), code: expect.stringMatching('EPIPE|ECONNRESET') });
});

test('a write that fails after the other side has ended reports its error', async () => {
  await using pair = await openPair();
  const client = readAfterFailedWrite(pair.client).resume();
  client.allowHalfOpen = true;
  pair.server.socket.end();
  await once(client, 'end');
  const failed = once(client, 'error');
  pair.server.reset();
  client.write('too late');
  expect(await failed).toMatchObject([{ syscall: 'write' }]);
});
