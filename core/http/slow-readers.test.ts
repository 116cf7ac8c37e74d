// Takes about 4 s
/** Clients of event streams that do not read: each may use a connection, but not the memory of the process. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { EventStreams } from './sse.ts';
import type { DropReason, EventStream } from './sse.ts';

const kibibyte = 1024;

let owned: AsyncDisposableStack;
let clock: ManualClock;
let drops: DropReason[];
beforeEach(() => {
  owned = new AsyncDisposableStack();
  clock = new ManualClock(new Date());
  drops = [];
});
afterEach(async () => await owned.disposeAsync());

/** Serves event streams on a Unix socket, for which the system buffers 200 KiB, and not 4 MiB as for TCP. */
async function serve(
  send: (stream: EventStream, response: ServerResponse) => Promise<void>,
  limits: { maxAllWaitingBytes?: number } = {},
): Promise<string> {
  const streams = new EventStreams({
    clock,
    closing: new AbortController().signal,
    onDrop: (_response, reason) => void drops.push(reason),
    ...limits,
  });
  const server = createServer((_request, response) => void send(streams.open(response), response));
  const path = join(owned.use(await temporaryFolder()).path, 'socket');
  server.listen(path);
  await once(server, 'listening');
  owned.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return path;
}

/** Requests a stream, and stops reading when it has begun. */
async function openReader(path: string): Promise<Socket> {
  const socket = connect(path);
  owned.defer(() => void socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(socket, 'readable');
  return socket;
}

async function openReaders(path: string, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  // As many connections as may wait for a server at a time.
  for (; sockets.length < count;) {
    const more = Math.min(200, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: more }, async () => await openReader(path)))));
  }
  return sockets;
}

/** Sends as fast as the client reads, as streams of logs do. */
async function sendEndlessly(stream: EventStream, response: ServerResponse): Promise<void> {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  for (let id = 0; !closed.signal.aborted; id += 1) {
    stream.send(id, 'x'.repeat(16 * kibibyte));
    await stream.drained(closed.signal).catch(() => {});
    await new Promise(setImmediate);
  }
  stream[Symbol.dispose]();
}

/** How many readers the limit of open files allows: each has a socket at both ends. */
async function readersWithin(most: number): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 1024);
  return Math.min(most, Math.floor((files - 500) / 2));
}

test('10,000 clients that read nothing cost some kilobytes each, and other clients receive their events', async () => {
  const count = await readersWithin(10_000);
  const streams: EventStream[] = [];
  const path = await serve(async (stream) => {
    streams.push(stream);
    stream.send(0, 'scheduled');
  });
  const before = process.memoryUsage().rss;
  await openReaders(path, count);
  const [reader] = await openReaders(path, 1);
  await expect.poll(() => streams.length).toBe(count + 1);
  for (const stream of streams) stream.send(1, 'ready');
  let text = '';
  reader?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await expect.poll(() => text).toContain('data: ready');
  expect((process.memoryUsage().rss - before) / count).toBeLessThan(64 * kibibyte);
  expect(drops).toEqual([]);
  for (const stream of streams) stream[Symbol.dispose]();
});

test('clients that read nothing for a minute are dropped, earlier if they are too many, and other clients are not', async () => {
  const [count, limit] = [300, 2 * 1024 * kibibyte];
  const responses: ServerResponse[] = [];
  const path = await serve(
    async (stream, response) => {
      responses.push(response);
      await sendEndlessly(stream, response);
    },
    { maxAllWaitingBytes: limit },
  );
  const sockets = await openReaders(path, count);
  const [reader] = await openReaders(path, 1);
  let readBytes = 0;
  reader?.on('data', (chunk: Buffer) => (readBytes += chunk.length));
  const waitingBytes = () =>
    responses.reduce((sum, { destroyed, writableLength }) => sum + (destroyed ? 0 : writableLength), 0);
  const areSilent = () => responses.slice(0, count).every((response) => response.writableNeedDrain);
  await expect.poll(areSilent).toBe(true);
  expect(waitingBytes()).toBeGreaterThan(2 * limit);
  for (let seconds = 0; seconds < 62; seconds += 1) {
    const seen = readBytes;
    await expect.poll(() => readBytes, { interval: 1 }).toBeGreaterThan(seen);
    await clock.advance(1_000);
    // After the first second it is too early to conclude that a client does not read.
    if (seconds > 0) expect(waitingBytes()).toBeLessThan(2 * limit);
  }
  expect(drops).toHaveLength(count);
  expect(new Set(drops)).toEqual(new Set(['crowded', 'stalled']));
  await expect.poll(() => responses.filter(({ destroyed }) => !destroyed).length).toBe(1);
  for (const socket of sockets) socket.destroy();
});

test('a client with more unread bytes than one client may have is dropped before the minute ends', async () => {
  const path = await serve(async (stream, response) => {
    for (let id = 0; !response.destroyed && id < 1000; id += 1) stream.send(id, 'x'.repeat(16 * kibibyte));
  });
  await openReader(path);
  await expect.poll(() => drops).toEqual(['behind']);
});
