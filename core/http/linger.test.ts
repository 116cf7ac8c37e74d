import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { answerEarly } from './linger.ts';
import { listen, newServer } from './listener.ts';

const never = new AbortController().signal;
const rejection = { status: 403, headers: { 'content-type': 'text/plain' }, body: Buffer.from('too much') };

/** A server that rejects each body when a part of it has arrived, and answers every other request. */
async function openServer(signal = never) {
  const server = newServer();
  let receivedBytes = 0;
  let wasComplete: boolean | undefined;
  server.on('request', (request, response) => {
    if (request.method === 'GET') {
      response.end('hello');
      return;
    }
    const writeHead = response.writeHead.bind(response);
    response.writeHead = ((...head: Parameters<typeof writeHead>) => {
      wasComplete = request.complete;
      return writeHead(...head);
    }) as typeof response.writeHead;
    request.once('data', () => {
      request.pause();
      void answerEarly({ request, response }, rejection, signal);
    });
    request.on('data', (chunk: Buffer) => (receivedBytes += chunk.length));
  });
  const listener = await listen(server, { host: '127.0.0.1', port: 0, drainMs: 100 });
  return {
    port: listener.port,
    get receivedBytes() {
      return receivedBytes;
    },
    /** Whether the whole body had arrived when its answer began. */
    get wasComplete() {
      return wasComplete;
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

async function openClient(port: number) {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  socket.on('data', (chunk: Buffer | string) => (received += String(chunk)));
  socket.on('error', () => {});
  await once(socket, 'connect');
  return { socket, text: () => received, until: async (part: string) => await untilHas(socket, () => received, part) };
}

async function untilHas(socket: Socket, received: () => string, part: string): Promise<void> {
  while (!received().includes(part)) await once(socket, 'data');
}

test('a client that waits for the answer before it continues receives it, and keeps its connection', async () => {
  await using server = await openServer();
  const client = await openClient(server.port);
  client.socket.write('PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 300000\r\n\r\n');
  client.socket.write(Buffer.alloc(200_000));
  await client.until('too much');
  expect(client.text()).not.toMatch(/connection: close/i);
  client.socket.write(Buffer.alloc(100_000));
  client.socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await client.until('hello');
  expect(server.receivedBytes).toBe(300_000);
  client.socket.destroy();
});

test('a short body is received before its answer, because a client that still writes might not read the answer', async () => {
  await using server = await openServer();
  const client = await openClient(server.port);
  client.socket.setNoDelay(true);
  client.socket.write('PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nfirst');
  while (server.receivedBytes === 0) await new Promise(setImmediate);
  client.socket.write(Buffer.alloc(995));
  await client.until('too much');
  expect(server.wasComplete).toBe(true);
  client.socket.destroy();
});

test('the answer does not wait long for a short body that does not arrive', async () => {
  await using server = await openServer();
  const client = await openClient(server.port);
  client.socket.write('PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nfirst');
  await client.until('too much');
  expect(server.wasComplete).toBe(false);
  client.socket.destroy();
});

test('a client whose body has no known end receives `Connection: close`, and may send the rest', async () => {
  await using server = await openServer();
  const client = await openClient(server.port);
  client.socket.write('PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  client.socket.write('5\r\nfirst\r\n');
  await client.until('too much');
  expect(client.text()).toMatch(/connection: close/i);
  const closed = once(client.socket, 'close');
  client.socket.write('4\r\nrest\r\n0\r\n\r\n');
  expect(await closed).toEqual([false]);
  expect(server.receivedBytes).toBe(9);
});

test('a client that sends without end reads the answer, and is cut off', async () => {
  await using server = await openServer();
  const client = await openClient(server.port);
  client.socket.write('PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536), Buffer.from('\r\n')]);
  const sendOn = () => {
    while (!client.socket.destroyed && client.socket.write(chunk));
  };
  client.socket.on('drain', sendOn);
  sendOn();
  await new Promise((resolve) => client.socket.once('close', resolve));
  expect(client.text()).toMatch(/connection: close[^]*too much$/i);
  expect(server.receivedBytes).toBeLessThan(9 * 1024 * 1024);
});

test('a closing process does not wait for a client that sends nothing more', async () => {
  const closing = new AbortController();
  await using server = await openServer(closing.signal);
  const client = await openClient(server.port);
  client.socket.write('PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nfirst');
  await client.until('too much');
  const closed = once(client.socket, 'close');
  closing.abort();
  expect(await closed).toEqual([false]);
});
