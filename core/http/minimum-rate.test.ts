// Takes about 10 s
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lengthOf } from '../blobs/blobs.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { withMinimumRate } from './minimum-rate.ts';

const clock = new ManualClock();
const minuteMs = 60_000;

/** What the server has received of the current request. */
interface Received {
  bytes: number;
  ended: boolean;
  slow: boolean;
}

let body: Received = { bytes: 0, ended: false, slow: false };
/** The server writes each chunk until this resolves. */
let written: Promise<void> = Promise.resolve();

const server = createServer((request, response) => {
  body = { bytes: 0, ended: false, slow: false };
  // Rejects when the client disconnects.
  receive(request, body).then(
    () => response.end(),
    () => {},
  );
});

async function receive(request: IncomingMessage, state: Received): Promise<void> {
  using watched = withMinimumRate(request, clock);
  watched.signal.addEventListener('abort', () => (state.slow = true));
  for await (const chunks of watched.bytes) {
    state.bytes += lengthOf(chunks);
    await written;
  }
  state.ended = true;
}

beforeAll(async () => void (await once(server.listen(0, '127.0.0.1'), 'listening')));
afterAll(() => server.close());

function open() {
  const { port } = server.address() as AddressInfo;
  const request = httpRequest({ port, host: '127.0.0.1', method: 'PUT', agent: false });
  request.on('error', () => {});
  return {
    /** Sends bytes, and waits until the server has them. */
    send: async (bytes: number, more: number) => {
      request.write(Buffer.alloc(bytes));
      await expect.poll(() => body.bytes).toBe(more);
    },
    end: () => request.end(),
    cut: () => request.destroy(),
  };
}

test('a client on a telephone line may send for hours', async () => {
  const client = open();
  const piece = 40 * 1024;
  for (let minute = 1; minute <= 200; minute += 1) {
    await client.send(piece, minute * piece);
    await clock.advance(minuteMs);
  }
  expect(body.slow).toBe(false);
  client.end();
  await expect.poll(() => body.ended).toBe(true);
});

test('a client that sends a few bytes every minute is too slow', async () => {
  const client = open();
  await client.send(1, 1);
  await clock.advance(minuteMs);
  await client.send(1_000, 1_001);
  await clock.advance(minuteMs - 1);
  expect(body.slow).toBe(false);
  await clock.advance(30_000);
  expect(body.slow).toBe(true);
  client.cut();
});

test('the time in which the server writes a chunk does not count', async () => {
  const disk = Promise.withResolvers<void>();
  written = disk.promise;
  const client = open();
  await client.send(10, 10);
  await clock.advance(60 * minuteMs);
  expect(body.slow).toBe(false);
  disk.resolve();
  client.end();
  await expect.poll(() => body.ended).toBe(true);
  expect(body.slow).toBe(false);
});
