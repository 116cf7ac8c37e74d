// Takes about 3 s
/** The proxy counts the traffic of each backend, and stores it periodically. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { proxies, traffic, trafficWriteMs } from '../model/traffic.ts';
import type { Traffic } from '../model/traffic.ts';
import {
  connected,
  exchangeBytes,
  openFixture,
  spawnReady,
  startProgram,
  startRawProgram,
  until,
} from './testing/fixture.ts';
import type { Fixture, Path } from './testing/fixture.ts';

let clock: ManualClock;
let fixture: Fixture;

async function stored(backend: string): Promise<Traffic[]> {
  return await fixture.store.find(traffic, { index: 'byBackend', equals: { backend } });
}

/** Waits until no request is open. */
async function untilClosed(): Promise<void> {
  await until(async () => (await fixture.metrics.metrics()).includes('\nberth_proxy_open_connections 0\n'));
}

/** Runs a pass, and waits until the store has the expected counts of a backend. */
async function untilStored(backend: string, expected: Partial<Traffic>): Promise<Traffic> {
  await clock.advance(trafficWriteMs);
  let found: Traffic | undefined;
  await until(async () => {
    [found] = await stored(backend);
    const { openConnections, requests } = expected;
    return (
      (openConnections === undefined || found?.openConnections === openConnections) &&
      (requests === undefined || found?.requests === requests)
    );
  });
  if (!found) throw new Error('Nothing is stored');
  return found;
}

const agreement = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';

describe.each<Path>(['plain', 'general'])('on the %s path', (path) => {
  beforeEach(async () => {
    clock = new ManualClock(new Date());
    fixture = await openFixture({ path, clock });
  });
  afterEach(async () => await fixture[Symbol.asyncDispose]());

  test('a pass stores the requests of each backend, and the bytes of their heads and bodies', async () => {
    await using program = await startProgram((request, response) => {
      request.resume().on('end', () => response.end('x'.repeat(1_000)));
    });
    const [one, other] = [await spawnReady(fixture, program), await spawnReady(fixture, program)];
    const post = (token: string, body: string, connection = 'keep-alive') =>
      `POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\nConnection: ${connection}\r\n\r\n${body}`;
    const writes = vi.spyOn(fixture.store, 'insert');
    // One connection carries requests to both.
    const client = await connected(fixture.port);
    const closed = once(client, 'close');
    let received = 0;
    client.on('data', ({ length }: Buffer) => (received += length));
    const sent: number[] = [];
    for (const request of [post(one.token, 'a'.repeat(500)), post(one.token, ''), post(other.token, 'b', 'close')]) {
      const before = received;
      client.write(request);
      sent.push(request.length);
      await until(() => received > before + 1_000);
    }
    await closed;
    await untilClosed();
    expect(writes).not.toHaveBeenCalled();
    const [ofOne, ofOther] = [
      await untilStored(one.backend, { requests: 2, openConnections: 0 }),
      await untilStored(other.backend, { requests: 1, openConnections: 0 }),
    ];
    expect([ofOne.receivedBytes, ofOther.receivedBytes]).toEqual([(sent[0] ?? 0) + (sent[1] ?? 0), sent[2]]);
    expect(ofOne.sentBytes + ofOther.sentBytes).toBe(received);
    expect(ofOther.sentBytes).toBeGreaterThan(1_000);
  });

  test('the bytes of an open request are counted while it is open, and once', async () => {
    const streams: Socket[] = [];
    await using program = await startRawProgram((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 8000\r\n\r\n');
      socket.write('x'.repeat(5_000));
      streams.push(socket);
    });
    const { token, backend } = await spawnReady(fixture, program);
    const client = await connected(fixture.port);
    let received = '';
    client.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')));
    const request = `GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`;
    client.write(request);
    await until(() => received.endsWith('x'.repeat(5_000)));
    const open = await untilStored(backend, { openConnections: 1 });
    expect(open).toMatchObject({ requests: 0, receivedBytes: request.length, sentBytes: received.length });
    streams[0]?.write('y'.repeat(3_000));
    await until(() => received.endsWith('y'.repeat(3_000)));
    await untilClosed();
    const ended = await untilStored(backend, { openConnections: 0, requests: 1 });
    expect(ended).toMatchObject({ receivedBytes: request.length, sentBytes: received.length });
    // The bytes of a request whose client disconnects are counted once, too.
    client.write(request);
    await until(() => streams.length === 2 && received.split('x'.repeat(5_000)).length === 3);
    await untilStored(backend, { openConnections: 1 });
    client.destroy();
    await untilClosed();
    const cut = await untilStored(backend, { openConnections: 0, requests: 2 });
    expect(cut).toMatchObject({ receivedBytes: 2 * request.length, sentBytes: received.length });
  });

  test('an upgraded connection is counted while it is open, and its proxy is stored as alive', async () => {
    await using program = await startRawProgram((socket) => {
      socket.write(agreement);
      socket.removeAllListeners('data').on('data', (bytes: Buffer) => socket.write(bytes));
    });
    const { token, backend } = await spawnReady(fixture, program);
    const client = await connected(fixture.port);
    client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
    await once(client, 'data');
    let echoed = 0;
    client.on('data', ({ length }: Buffer) => (echoed += length));
    client.write('x'.repeat(5_000));
    await until(() => echoed === 5_000);
    const open = await untilStored(backend, { openConnections: 1 });
    expect(open).toMatchObject({ requests: 0, openConnections: 1 });
    expect(Math.min(open.receivedBytes, open.sentBytes)).toBeGreaterThan(5_000);
    expect((await fixture.store.get(proxies, open.proxy))?.aliveUntil.getTime()).toBeGreaterThan(Date.now());
    client.write('y'.repeat(3_000));
    await until(() => echoed === 8_000);
    client.destroy();
    await untilClosed();
    const closed = await untilStored(backend, { openConnections: 0, requests: 1 });
    expect(closed.receivedBytes - open.receivedBytes).toBe(3_000);
    expect(closed.sentBytes - open.sentBytes).toBe(3_000);
    expect(await stored(backend)).toHaveLength(1);
  });
});

describe('the document of a backend', () => {
  beforeEach(async () => {
    clock = new ManualClock(new Date());
    fixture = await openFixture({ clock });
  });
  afterEach(async () => await fixture[Symbol.asyncDispose]());

  async function request(token: string): Promise<void> {
    await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  }

  test('is not written while nothing has changed', async () => {
    await using program = await startProgram((_request, response) => response.end('hi'));
    const { token, backend } = await spawnReady(fixture, program);
    await request(token);
    const before = await untilStored(backend, { requests: 1, openConnections: 0 });
    const update = vi.spyOn(fixture.store, 'update');
    const now = vi.spyOn(fixture.store, 'now');
    await clock.advance(trafficWriteMs);
    await until(() => now.mock.calls.length > 0);
    expect(update).not.toHaveBeenCalled();
    expect(await stored(backend)).toEqual([before]);
  });

  test('counts each request once after a write that succeeded was reported as failed', async () => {
    await using program = await startProgram((_request, response) => response.end('hi'));
    const { token, backend } = await spawnReady(fixture, program);
    await request(token);
    const insert = fixture.store.insert.bind(fixture.store);
    const failing = vi.spyOn(fixture.store, 'insert').mockImplementationOnce(async (...args) => {
      await insert(...args);
      throw new Error('The connection to the store is lost');
    });
    await clock.advance(trafficWriteMs);
    await until(() => failing.mock.results.length === 1);
    // The next pass would otherwise join this one.
    await expect(failing.mock.results[0]?.value).rejects.toThrow('is lost');
    await request(token);
    await untilStored(backend, { requests: 2 });
    expect(await stored(backend)).toHaveLength(1);
  });

  test('gets the remaining counts when the proxy closes', async () => {
    await using program = await startProgram((_request, response) => response.end('hi'));
    const { token, backend } = await spawnReady(fixture, program);
    await request(token);
    await fixture.proxy[Symbol.asyncDispose]();
    expect(await stored(backend)).toMatchObject([{ requests: 1, openConnections: 0 }]);
  });

  test('is followed by another one after a long time without traffic', async () => {
    await using program = await startProgram((_request, response) => response.end('hi'));
    const { token, backend } = await spawnReady(fixture, program);
    await request(token);
    await untilStored(backend, { requests: 1, openConnections: 0 });
    let sent = 1;
    const counts = async () => (await stored(backend)).map(({ requests }) => requests);
    const areAllStored = async () => {
      await clock.advance(trafficWriteMs);
      return (await counts()).reduce((sum, count) => sum + count, 0) === sent;
    };
    // A request at the end of a pass may still be counted in the old document.
    await until(async () => {
      clock.set(60 * 60_000);
      await clock.advance(trafficWriteMs);
      await request(token);
      sent += 1;
      await until(areAllStored);
      return (await counts()).length > 1;
    });
    expect(await counts()).toHaveLength(2);
  });
});
