// Takes about 10 s
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lengthOf } from '../../core/blobs/blobs.ts';
import { ManualClock } from '../../core/clock/manual-clock.ts';
import { paced } from './pace.ts';

const clock = new ManualClock();
const minuteMs = 60_000;

/** What the server has of the request under way. */
interface Received {
  bytes: number;
  ended: boolean;
  slow: boolean;
}

let body: Received = { bytes: 0, ended: false, slow: false };
/** Writing a chunk takes until this is fulfilled. */
let written: Promise<void> = Promise.resolve();

const server = createServer((request, response) => {
  body = { bytes: 0, ended: false, slow: false };
  // Clients that hang up end it with an error.
  receive(request, body).then(
    () => response.end(),
    () => {},
  );
});

async function receive(request: IncomingMessage, state: Received): Promise<void> {
  using watched = paced(request, clock);
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
      await expect.poll(() => body.bytes, { timeout: 20_000 }).toBe(more);
    },
    end: () => request.end(),
    cut: () => request.destroy(),
  };
}

test('an honest client on a telephone line is waited for, for hours', async () => {
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

test('one that sends a little every minute is not', async () => {
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

test('while a chunk is being written, its client is not slow', async () => {
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
