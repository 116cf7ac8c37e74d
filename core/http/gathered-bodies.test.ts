import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GatheredBodies, Pace } from './gathered-bodies.ts';

const kib = 1024;

describe('the pace of a body', () => {
  test('is one to be gathered by when it is neither too slow nor too fast', () => {
    const fits = [0, 7, 8, 100, 256, 257].map((tick) => new Pace().fits(tick * kib, false));
    expect(fits).toStrictEqual([false, false, true, true, true, false]);
  });

  test('is tried now and then, and less often each time', () => {
    const pace = new Pace();
    let isGathered = false;
    const trials: number[] = [];
    for (let look = 0; look < 70; look += 1) {
      const fits = pace.fits(50 * kib, isGathered);
      if (!fits) trials.push(look);
      isGathered = fits;
    }
    expect(trials).toStrictEqual([4, 9, 18, 35, 68]);
  });

  test('is left alone from then on if it is twice as fast when it goes free', () => {
    const pace = new Pace();
    for (let look = 0; look < 4; look += 1) pace.fits(64 * kib, look > 0);
    expect(pace.fits(64 * kib, true)).toBe(false);
    expect(pace.fits(129 * kib, false)).toBe(false);
    expect(pace.fits(50 * kib, false)).toBe(false);
  });
});

const piece = randomBytes(64 * kib);
const agent = new Agent({ keepAlive: true });
let handle = async (_request: IncomingMessage, response: ServerResponse): Promise<void> => void response.end();
const server = createServer((request, response) => void handle(request, response));

beforeAll(async () => void (await once(server.listen(0, '127.0.0.1'), 'listening')));
afterAll(() => {
  agent.destroy();
  server.closeAllConnections();
  server.close();
});

function open(method = 'PUT'): ClientRequest {
  const { port } = server.address() as AddressInfo;
  return httpRequest({ port, host: '127.0.0.1', method, agent });
}

/** Sends pieces as docker does: one, and some time later the next, until it is enough. Returns how many. */
async function trickle(client: ClientRequest, isEnough: () => boolean): Promise<number> {
  let pieces = 0;
  while (!isEnough()) {
    if (!client.write(piece)) await once(client, 'drain');
    pieces += 1;
    await delay(2);
  }
  return pieces;
}

/** Pushes at that pace on some connections; `isEnough` is asked before each piece. */
async function pushers(isEnough: () => boolean): Promise<readonly { pieces: number; answer: string }[]> {
  return await Promise.all(
    Array.from({ length: 4 }, async () => {
      const client = open();
      const answered = once(client, 'response');
      const pieces = await trickle(client, isEnough);
      client.end();
      const [response] = (await answered) as [IncomingMessage];
      return { pieces, answer: await text(response) };
    }),
  );
}

function digestOf(pieces: number): string {
  const hash = createHash('sha256');
  for (let i = 0; i < pieces; i += 1) hash.update(piece);
  return hash.digest('hex');
}

test('bodies that come in pieces are gathered, come whole, and leave their connections open', async () => {
  const bodies = new GatheredBodies();
  let reads = 0;
  handle = async (request, response) => {
    using _watched = bodies.watch(request);
    const hash = createHash('sha256');
    for await (const chunk of request) hash.update(chunk as Buffer);
    response.end(hash.digest('hex'));
  };
  let gathered = 0;
  const sent = await pushers(() => {
    reads += 1;
    gathered = Math.max(gathered, bodies.count);
    // As many again, while they are gathered.
    return gathered > 0 && reads > 2_000;
  });
  expect(gathered).toBeGreaterThan(0);
  expect(sent.map(({ answer }) => answer)).toStrictEqual(sent.map(({ pieces }) => digestOf(pieces)));
  expect(bodies.count).toBe(0);
  // On the same connections.
  handle = async (request, response) => void response.end(String(request.socket.remotePort));
  const ports = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const client = open('GET').end();
      const [response] = (await once(client, 'response')) as [IncomingMessage];
      return [client.reusedSocket, await text(response)];
    }),
  );
  expect(ports.every(([isReused]) => isReused)).toBe(true);
});

test('one whose reader stands still is not read on', async () => {
  const bodies = new GatheredBodies();
  const requests: IncomingMessage[] = [];
  const goOn = Promise.withResolvers<void>();
  const came = new Map<IncomingMessage, number>();
  handle = async (request, response) => {
    using _watched = bodies.watch(request);
    requests.push(request);
    request.on('data', (chunk: Buffer) => came.set(request, (came.get(request) ?? 0) + chunk.length));
    await once(request, 'end');
    response.end(String(came.get(request)));
  };
  let isStill = false;
  let ticks = 0;
  const sending = pushers(() => {
    if (bodies.count === 4 && !isStill) {
      isStill = true;
      for (const request of requests) request.pause();
      void standStill().then(goOn.resolve, goOn.reject);
    }
    return ticks >= 100;
  });
  const standStill = async () => {
    const before = requests.map(({ socket }) => socket.bytesRead);
    for (; ticks < 100; ticks += 1) await delay(4);
    const after = requests.map(({ socket }) => socket.bytesRead);
    // What was on its way, and what fits the buffer of the request.
    for (const [i, bytes] of after.entries()) expect(bytes - (before[i] ?? 0)).toBeLessThan(1024 * kib);
    for (const request of requests) request.resume();
  };
  const sent = await sending;
  await goOn.promise;
  expect(isStill).toBe(true);
  expect(sent.map(({ answer }) => Number(answer))).toStrictEqual(sent.map(({ pieces }) => pieces * piece.length));
});
