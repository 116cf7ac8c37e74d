import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { arch } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../../test/kit/machine/free-port.ts';
import { freeze } from '../../test/kit/machine/frozen-process.ts';

const program = join(import.meta.dirname, arch() === 'arm64' ? 'port-helper-arm64' : 'port-helper-amd64');

const opened: (() => void)[] = [];
afterEach(() => {
  for (const close of opened.splice(0)) close();
});

function run(...args: string[]): ChildProcess {
  const child = spawn(program, args);
  opened.push(() => child.kill('SIGKILL'));
  return child;
}

/** Reads to the end. `buffer(socket)` alone would then destroy the socket, with its unwritten data. */
async function readAll(socket: Socket): Promise<Buffer> {
  return await buffer(socket.iterator({ destroyOnReturn: false }));
}

/** A server that is reached at 127.0.0.2 only, and through a forwarder at 127.0.0.1. */
async function forwarded(onConnection: (socket: Socket) => void): Promise<Forwarded> {
  const port = await freePort();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  server.listen(port, '127.0.0.2');
  await once(server, 'listening');
  opened.push(() => server.close());
  const from = await freePort();
  const child = run('forward', '127.0.0.1', String(from), '127.0.0.2', String(port));
  await expect.poll(() => canConnect(from)).toBe(true);
  return { port: from, server, child };
}

interface Forwarded {
  readonly port: number;
  readonly server: Server;
  readonly child: ChildProcess;
}

async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return (await new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).finally(() => socket.destroy())) as boolean;
}

function client(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  opened.push(() => socket.destroy());
  return socket;
}

test('the bytes and the end of each direction are forwarded separately', async () => {
  const { port } = await forwarded((socket) => {
    void text(socket).then((said) => socket.end(`received ${said}`));
  });
  const socket = client(port);
  socket.end('hello');
  expect(await text(socket)).toBe('received hello');
});

test('large transfers in both directions at once arrive complete, although neither side reads for a while', async () => {
  const received: boolean[] = [];
  const bytes = Buffer.alloc(8 * 1024 * 1024, 'abcdefgh');
  const { port } = await forwarded((socket) => {
    socket.end(bytes);
    const receive = async () => {
      // The connection that tests the port sends nothing, and usually it is reset.
      const all = await readAll(socket).catch(() => undefined);
      if (all?.length) received.push(all.equals(bytes));
    };
    setTimeout(() => void receive(), 50);
  });
  const socket = client(port);
  socket.end(bytes);
  await once(socket, 'connect');
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect((await readAll(socket)).equals(bytes)).toBe(true);
  await expect.poll(() => received).toEqual([true]);
});

test('the client sees a reset or a refused connection of the program', async () => {
  const { port, server } = await forwarded((socket) => socket.once('data', () => socket.resetAndDestroy()));
  const reset = client(port);
  reset.write('x');
  expect(await once(reset, 'error').catch((error: unknown) => [error])).toMatchObject([{ code: 'ECONNRESET' }]);
  server.close();
  expect(await once(client(port), 'error')).toMatchObject([{ code: 'ECONNRESET' }]);
});

test.each([1, 5_000_000])(
  'an answer arrives although the program has reset its connection, after %i bytes of the client',
  async (sentBytes) => {
    const { port, child } = await forwarded((socket) => socket.once('data', () => void answer(socket)));
    const answer = async (to: Socket) => {
      // The forwarder sees the answer and the reset at the same time.
      const thaw = await freeze(child);
      to.write('an early answer');
      to.resetAndDestroy();
      thaw();
    };
    const socket = client(port);
    const received = once(socket, 'data') as Promise<unknown> as Promise<[Buffer]>;
    const broken = once(socket, 'error');
    socket.write(Buffer.alloc(sentBytes));
    expect((await received).toString()).toBe('an early answer');
    await broken;
  },
);

test('many connections are forwarded at a time', async () => {
  const { port } = await forwarded((socket) => socket.pipe(socket));
  const said = Array.from({ length: 300 }, (_, i) => `client ${i}`);
  const received = await Promise.all(
    said.map(async (words) => {
      const socket = client(port);
      socket.end(words);
      return await text(socket);
    }),
  );
  expect(received).toEqual(said);
});

test('it ends with the reason if the address is in use', async () => {
  const { port } = await forwarded(() => {});
  const second = run('forward', '127.0.0.1', String(port), '127.0.0.2', '80');
  expect(await text(second.stderr!)).toMatch(/bind: Address .*in use/);
});

test('it lists the sockets that listen', async () => {
  const server = createServer().listen(0, '127.0.0.3');
  await once(server, 'listening');
  opened.push(() => server.close());
  const { port } = server.address() as { port: number };
  const lines = (await text(run('listeners').stdout!)).split('\n');
  expect(lines).toContain(`0300007F:${port.toString(16).toUpperCase().padStart(4, '0')}`);
});

test('it ends a program that runs for too long', async () => {
  const [, signal] = (await once(run('within', '1', 'sleep', '60'), 'exit')) as [unknown, string];
  expect(signal).toBe('SIGALRM');
  expect(await once(run('within', '60', 'sh', '-c', 'exit 3'), 'exit')).toEqual([3, null]);
  expect(await once(run('within', '60', 'no-such-program'), 'exit')).toEqual([127, null]);
});

test.each([
  [],
  ['listeners', 'x'],
  ['forward', '127.0.0.1', '1', '::1'],
  ['forward', '127.0.0.1', '0', '::1', '1'],
  ['forward', '127.0.0.1', '1', '::1', '65536'],
  ['forward', 'x', '1', '::1', '1'],
  ['within', 'x', 'y'],
])('refuses other arguments: %s %s %s %s', async (...args) => {
  expect(await once(run(...args), 'exit')).toEqual([2, null]);
});
