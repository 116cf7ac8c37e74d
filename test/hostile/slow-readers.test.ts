// Takes about 30 s
/** Clients that request a large blob and do not read it: each may hold a connection, but little memory of the registry. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { openTestRegistry, pushBlob, sendTo } from '../kit/registry/registry.ts';
import { againstAllRegistries, residentMiB, waitMs } from './fixture.ts';

/** More than the system buffers for a connection, so that the registry has to wait. */
const blobBytes = 8 * 1024 * 1024;

/** Large enough that a slow reader has not received all of it when the others are disconnected. */
const longBytes = 24 * 1024 * 1024;

/** The kernel copies megabytes for each reader, which takes 10 ms of CPU time. */
const readersOn = { embedded: 200, shared: 50 } as const;

/** On GridFS each reader holds at least a chunk of 1 MiB; readers that prefetch chunks would hold four times that. */
const allowedMiB = { embedded: 120, shared: 140 } as const;

againstAllRegistries((fixture) => {
  test('many stalled readers cost little memory', { timeout: 300_000 }, async () => {
    const drivers = fixture.drivers === 'embedded' ? 'embedded' : 'shared';
    const bytes = randomBytes(blobBytes);
    const { digest } = await fixture.blob('home/slow', bytes);
    const path = `/v2/home/slow/blobs/${digest}`;
    expect((await fixture.send(path)).body.equals(bytes)).toBe(true);
    const { registryPid } = fixture.platform;
    const before = await residentMiB(registryPid);
    const readers = await Promise.all(
      Array.from({ length: readersOn[drivers] }, async () => await openStalled(fixture, path)),
    );
    expect((await residentMiB(registryPid)) - before).toBeLessThan(allowedMiB[drivers]);
    expect((await fixture.send(path)).body.equals(bytes)).toBe(true);
    for (const reader of readers) reader.resetAndDestroy();
  });

  test('many stalled downloads of an archive cost little memory', { timeout: 300_000 }, async () => {
    const drivers = fixture.drivers === 'embedded' ? 'embedded' : 'shared';
    const { pid, apiUrl, token } = fixture.platform;
    const layer = randomBytes(blobBytes);
    const digest = await fixture.image('home/slow', layer);
    const place = { port: Number(new URL(apiUrl).port), authorization: `Bearer ${token}` };
    const path = `/v2/service/home/slow/images/${digest}/archive`;
    const download = async () => await sendTo(place.port, path, { headers: { authorization: place.authorization } });
    expect((await download()).body.includes(layer)).toBe(true);
    const before = await residentMiB(pid);
    const readers = await Promise.all(
      Array.from({ length: readersOn[drivers] }, async () => await openStalled(place, path)),
    );
    expect((await residentMiB(pid)) - before).toBeLessThan(allowedMiB[drivers]);
    expect((await download()).body.includes(layer)).toBe(true);
    for (const reader of readers) reader.resetAndDestroy();
  });
});

describe.each(testDrivers().map((drivers) => ({ drivers, name: drivers === 'embedded' ? 'files' : 'GridFS' })))(
  'With a manual clock, on $name',
  ({ drivers }) => {
    test(
      'many stalled readers are disconnected; few stalled readers and a slow reader are not',
      { timeout: 300_000 },
      async () => {
        const clock = new ManualClock(new Date());
        await using registry = await openTestRegistry({ drivers, clock });
        const blob = await pushBlob(registry, 'acme/slow', randomBytes(blobBytes));
        const long = await pushBlob(registry, 'acme/slow', randomBytes(longBytes));
        const authorization = registry.basic('acme', registry.token);
        const begin = async ({ digest } = blob) =>
          await openStalled({ port: registry.port, authorization }, `/v2/acme/slow/blobs/${digest}`);
        const some = await Promise.all(Array.from({ length: 20 }, () => begin()));
        await clock.advance(300_000);
        const [first, ...few] = some as [Socket, ...Socket[]];
        expect(await restOf(first)).toBeGreaterThan(blobBytes);

        const more = await Promise.all(Array.from({ length: 129 }, () => begin()));
        const busy = await begin(long);
        let readBytes = 0;
        for (let seconds = 0; seconds < 180; seconds += 30) {
          readBytes += await readSome(busy, longBytes / 12);
          await clock.advance(30_000);
        }
        // Readers that received bytes a moment ago may remain connected: there is capacity for them now.
        const rests = await Promise.all([...few, ...more].map(restOf));
        expect(rests.filter((bytes) => bytes > blobBytes).length).toBeLessThan(128);
        expect(readBytes + (await restOf(busy))).toBeGreaterThan(longBytes);
        expect(registry.logLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
      },
    );
  },
);

interface Place {
  readonly port: number;
  readonly authorization: string;
}

/** Opens a connection, and stops reading when the response has begun. */
async function openStalled({ port, authorization }: Place, path: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  const head = [`GET ${path} HTTP/1.1`, 'host: registry', `authorization: ${authorization}`, 'connection: close'];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  await once(socket, 'readable', { signal: AbortSignal.timeout(waitMs) });
  return socket;
}

/** Reads at least this number of bytes. */
async function readSome(socket: Socket, bytes: number): Promise<number> {
  let readBytes = 0;
  while (readBytes < bytes) {
    const chunk = socket.read() as Buffer | null;
    if (chunk) readBytes += chunk.length;
    else await once(socket, 'readable', { signal: AbortSignal.timeout(waitMs) });
  }
  return readBytes;
}

/** Reads until the connection closes. Returns the number of bytes, including the head of the response. */
async function restOf(socket: Socket): Promise<number> {
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await once(socket, 'close', { signal: AbortSignal.timeout(waitMs) });
  return bytes;
}
