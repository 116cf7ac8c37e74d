import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { RequestBytes } from './request-bytes.ts';

const clock = new ManualClock();
let handle: RequestListener = () => {};
const server = createServer((request, response) => handle(request, response));

beforeAll(async () => void (await once(server.listen(0, '127.0.0.1'), 'listening')));
afterAll(() => server.close());

function open(): ClientRequest {
  const { port } = server.address() as AddressInfo;
  const client = httpRequest({ port, host: '127.0.0.1', method: 'PUT', agent: false });
  client.on('error', () => {});
  return client;
}

/** The request as the server receives it. */
async function received(client: ClientRequest): Promise<IncomingMessage> {
  const arrived = Promise.withResolvers<IncomingMessage>();
  handle = (request, response) => {
    arrived.resolve(request);
    request.once('end', () => response.end());
  };
  client.flushHeaders();
  return await arrived.promise;
}

async function readAll(bytes: RequestBytes): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const some of bytes) chunks.push(...some);
  return Buffer.concat(chunks);
}

test.each([1, 70_000, 5_000_000])('yields %i bytes as they were sent', async (size) => {
  const sent = randomBytes(size);
  const client = open();
  const request = await received(client);
  using bytes = new RequestBytes(request, clock);
  client.end(sent);
  expect((await readAll(bytes)).equals(sent)).toBe(true);
  expect(bytes.receivedBytes).toBe(size);
});

test('stops a client that sends faster than its bytes are read', async () => {
  // More than the system buffers for both ends of a connection.
  const sent = Buffer.alloc(32 * 1024 * 1024);
  const client = open();
  const request = await received(client);
  using bytes = new RequestBytes(request, clock);
  client.end(sent);
  let read = 0;
  for await (const some of bytes) {
    for (const chunk of some) read += chunk.length;
    const isHeld = () => request.isPaused() || bytes.receivedBytes === sent.length;
    await expect.poll(isHeld, { interval: 1 }).toBe(true);
    // One waiting batch, and the chunk that completed it.
    expect(bytes.receivedBytes - read).toBeLessThan(400_000);
    if (read > 4_000_000) break;
  }
  client.destroy();
});

test('fails when the client disconnects in the middle, after the bytes that it sent', async () => {
  const client = open();
  const request = await received(client);
  using bytes = new RequestBytes(request, clock);
  client.write('half');
  const reader = bytes[Symbol.asyncIterator]();
  const { value } = await reader.next();
  expect(Buffer.concat(value ?? []).toString()).toBe('half');
  client.destroy();
  await expect(reader.next()).rejects.toMatchObject({ code: 'ECONNRESET' });
});

test('fails when the client disconnected before the first read', async () => {
  const client = open();
  const request = await received(client);
  client.destroy();
  await expect.poll(() => request.closed).toBe(true);
  using bytes = new RequestBytes(request, clock);
  await expect(readAll(bytes)).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' });
});

test('a read that waits for the client ends when it is disposed', async () => {
  const client = open();
  const request = await received(client);
  const bytes = new RequestBytes(request, clock);
  client.write('half');
  const reader = bytes[Symbol.asyncIterator]();
  await reader.next();
  const pending = reader.next();
  bytes[Symbol.dispose]();
  await expect(pending).rejects.toThrow('no longer read');
  client.destroy();
});

test('yields nothing when the body was read before', async () => {
  const client = open();
  const request = await received(client);
  client.end('gone');
  for await (const _chunk of request);
  using bytes = new RequestBytes(request, clock);
  expect(await readAll(bytes)).toHaveLength(0);
});
