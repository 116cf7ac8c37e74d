import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { newGatedServer } from './gated-server.ts';
import { listen, newServer } from './listener.ts';

async function open(drainMs: number) {
  const gate = newGatedServer();
  const listener = await listen(gate.server, { host: '127.0.0.1', port: 0, drainMs });
  return { gate, listener, url: `http://127.0.0.1:${listener.port}` };
}

test('requests before the component is open get 503 with Retry-After', async () => {
  const { gate, listener, url } = await open(1_000);
  await using _ = listener;
  const early = await fetch(url);
  expect([early.status, early.headers.get('retry-after')]).toEqual([503, '1']);
  gate.open({ handle: (_request, response) => void response.end('open') });
  expect(await (await fetch(url)).text()).toBe('open');
});

test('closing lets an open request finish, and accepts no new one', async () => {
  const { gate, listener, url } = await open(10_000);
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<() => void>();
  gate.open({ handle: (_request, response) => arrive(() => void response.end('finished')) });
  const answer = fetch(url).then((response) => response.text());
  const finish = await arrived;
  const closed = listener[Symbol.asyncDispose]();
  await expect(fetch(url)).rejects.toThrow('fetch failed');
  finish();
  expect(await answer).toBe('finished');
  await closed;
});

test('closing does not wait for connections without a request', async () => {
  const { listener } = await open(60_000);
  const silent = connect(listener.port, '127.0.0.1');
  await once(silent, 'connect');
  const ended = once(silent, 'close');
  await listener[Symbol.asyncDispose]();
  await ended;
  expect(silent.destroyed).toBe(true);
});

test('closing cuts requests and upgraded sockets that do not finish in time, and is idempotent', async () => {
  const { gate, listener } = await open(50);
  gate.open({
    handle: () => {},
    upgrade: (_request, socket) =>
      void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  });
  const socket = connect(listener.port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
  await once(socket, 'data');
  const ended = once(socket, 'close');
  await Promise.all([listener[Symbol.asyncDispose](), listener[Symbol.asyncDispose]()]);
  await ended;
  expect(socket.destroyed).toBe(true);
});

test('without a handler for upgrades, an upgrade request is an ordinary request', async () => {
  const { gate, listener, url } = await open(1_000);
  await using _ = listener;
  gate.open({ handle: (_request, response) => void response.end('plain') });
  const socket = connect(listener.port, '127.0.0.1');
  socket.end(`GET / HTTP/1.1\r\nhost: ${new URL(url).host}\r\nupgrade: h2c\r\nconnection: upgrade, close\r\n\r\n`);
  const chunks = await socket.toArray();
  expect(Buffer.concat(chunks as Buffer[]).toString()).toMatch(/^HTTP\/1\.1 200 [^]*plain$/);
});

test('the error for a port in use contains the port', async () => {
  const { listener } = await open(1_000);
  await using _ = listener;
  await expect(listen(newServer(), { host: '127.0.0.1', port: listener.port })).rejects.toThrow(String(listener.port));
});
