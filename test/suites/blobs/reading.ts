/** Tests of published blobs: reading, listing, deleting. */
import { randomBytes, randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'vitest';
import type { OpenBlob } from '../../../core/blobs/blobs.ts';
import { digestOf, generationOf, largeBytes, listOf, publish, readAll } from './content.ts';
import type { BlobsTest } from './content.ts';

export function describeReading(blobsTest: BlobsTest): void {
  blobsTest('answers a ping', async ({ blobs }) => {
    await expect(blobs.ping()).resolves.toBeUndefined();
  });

  blobsTest('has no blob that was not published', async ({ blobs }) => {
    const digest = digestOf(Buffer.from('x'));
    expect(await blobs.stat(digest)).toBeUndefined();
    expect(await blobs.read(digest)).toBeUndefined();
    expect(await blobs.delete(digest)).toBe(false);
    expect(await listOf(blobs.list())).toStrictEqual([]);
  });

  for (const [what, bytes] of [
    ['no bytes', Buffer.alloc(0)],
    ['a few bytes', Buffer.from('hello')],
    ['many bytes', randomBytes(largeBytes)],
  ] as const) {
    blobsTest(`returns ${what}`, async ({ blobs }) => {
      const digest = await publish(blobs, bytes);
      expect(await blobs.stat(digest)).toMatchObject({ sizeBytes: bytes.length });
      expect(Buffer.compare(await readAll(blobs, digest), bytes)).toBe(0);
    });
  }

  blobsTest('returns ranges', async ({ blobs }) => {
    const bytes = randomBytes(largeBytes);
    const digest = await publish(blobs, bytes);
    const last = bytes.length - 1;
    const ranges = [
      [0, 0],
      [0, last],
      [last, last],
      [1, 2],
      [1024 * 1024 - 1, 1024 * 1024],
      [5, 2 * 1024 * 1024 + 5],
      [last - 1, last + 100],
    ] as const;
    for (const [start, end] of ranges) {
      const read = await blobs.read(digest, { start, end });
      expect(Buffer.compare(await buffer(read as Readable), bytes.subarray(start, end + 1))).toBe(0);
    }
    await expect(blobs.read(digest, { start: 2, end: 1 })).rejects.toThrow(RangeError);
    await expect(blobs.read(digest, { start: -1, end: 1 })).rejects.toThrow(RangeError);
  });

  blobsTest('copies the requested range to a stream, and leaves the stream open', async ({ blobs }) => {
    const bytes = randomBytes(largeBytes);
    await using blob = (await blobs.open(await publish(blobs, bytes))) as OpenBlob;
    expect(blob.sizeBytes).toBe(bytes.length);
    const last = bytes.length - 1;
    const ranges = [
      { start: 0, end: last },
      { start: 5, end: 2 * 1024 * 1024 + 5 },
      { start: last, end: last + 100 },
      { start: 1, end: 2 },
    ];
    for (const range of ranges) {
      const to = new Collecting();
      await blob.copyTo(to, range);
      await blob.copyTo(to);
      const expected = Buffer.concat([bytes.subarray(range.start, range.end + 1), bytes]);
      expect(Buffer.compare(Buffer.concat(to.received), expected)).toBe(0);
    }
    await using empty = (await blobs.open(await publish(blobs, Buffer.alloc(0)))) as OpenBlob;
    const nothing = new Collecting();
    await empty.copyTo(nothing);
    expect([nothing.received, nothing.writable]).toStrictEqual([[], true]);
    expect(await blobs.open(digestOf(Buffer.from('absent')))).toBeUndefined();
  });

  blobsTest('copies to many streams at once, some of which fail, without mixing them up', async ({ blobs }) => {
    const contents = Array.from({ length: 6 }, () => randomBytes(largeBytes));
    const digests = await Promise.all(contents.map(async (bytes) => await publish(blobs, bytes)));
    const copies = digests.flatMap((digest, index) => [
      { digest, index, breaksAt: Infinity },
      { digest, index, breaksAt: index * 2e5 },
    ]);
    await Promise.all(
      copies.map(async ({ digest, index, breaksAt }) => {
        await using blob = (await blobs.open(digest)) as OpenBlob;
        const to = new Collecting(breaksAt);
        const copied = blob.copyTo(to);
        if (breaksAt < Infinity) await expect(copied).rejects.toThrow('Broken off');
        else await copied;
        const received = Buffer.concat(to.received);
        expect(Buffer.compare(received, (contents[index] as Buffer).subarray(0, received.length))).toBe(0);
        if (breaksAt === Infinity) expect(received.length).toBe(largeBytes);
      }),
    );
  });

  blobsTest('lists all blobs', async ({ blobs }) => {
    const digests = [
      await publish(blobs, Buffer.from('a')),
      await publish(blobs, Buffer.from('b')),
      await publish(blobs, Buffer.from('c'), 'sha512'),
    ];
    expect((await listOf(blobs.list())).toSorted()).toStrictEqual(digests.toSorted());
    await blobs.delete(digests[0] as string);
    expect((await listOf(blobs.list())).toSorted()).toStrictEqual(digests.slice(1).toSorted());
  });

  blobsTest('finishes reading a blob that is deleted meanwhile, and no longer has it afterwards', async ({ blobs }) => {
    const bytes = randomBytes(largeBytes);
    const digest = await publish(blobs, bytes);
    const reading = (await blobs.read(digest)) as Readable;
    expect(await blobs.delete(digest)).toBe(true);
    expect(await blobs.stat(digest)).toBeUndefined();
    expect(await blobs.read(digest)).toBeUndefined();
    expect(await blobs.delete(digest)).toBe(false);
    expect(Buffer.compare(await buffer(reading), bytes)).toBe(0);
    expect(await publish(blobs, bytes)).toBe(digest);
    expect(await blobs.stat(digest)).toBeDefined();
  });

  blobsTest('deletes a blob of a given generation, and no later one', async ({ blobs }) => {
    const bytes = randomBytes(1_000);
    const digest = await publish(blobs, bytes);
    const first = await generationOf(blobs, digest);
    // Publishing it again does not change its generation.
    await publish(blobs, bytes);
    expect(await generationOf(blobs, digest)).toBe(first);
    await blobs.renew(digest);
    const renewed = await generationOf(blobs, digest);
    expect(renewed).not.toBe(first);
    expect(await blobs.delete(digest, first)).toBe(false);
    expect(Buffer.compare(await readAll(blobs, digest), bytes)).toBe(0);
    expect(await blobs.delete(digest, renewed)).toBe(true);
    expect(await blobs.stat(digest)).toBeUndefined();
    await blobs.renew(digest);
    expect(await blobs.stat(digest)).toBeUndefined();
    await publish(blobs, bytes);
    expect([first, renewed]).not.toContain(await generationOf(blobs, digest));
    expect(await blobs.delete(digest, renewed)).toBe(false);
    expect(Buffer.compare(await readAll(blobs, digest), bytes)).toBe(0);
  });

  blobsTest('rejects strings that are not digests', async ({ blobs }) => {
    const hex = 'a'.repeat(64);
    const digests = [
      '',
      hex,
      'sha256:',
      `sha256:${hex}a`,
      `sha256:${hex.toUpperCase()}`,
      `md5:${hex}`,
      'sha256:../../x',
    ];
    const uploadId = randomUUID();
    await blobs.createUpload(uploadId);
    for (const digest of digests) {
      await expect(blobs.stat(digest)).rejects.toThrow(TypeError);
      await expect(blobs.read(digest)).rejects.toThrow(TypeError);
      await expect(blobs.delete(digest)).rejects.toThrow(TypeError);
      await expect(blobs.renew(digest)).rejects.toThrow(TypeError);
      await expect(blobs.publishUpload(uploadId, digest)).rejects.toThrow(TypeError);
    }
    expect(await blobs.statUpload(uploadId)).toBeDefined();
  });
}

/** A slow stream that copies what it receives, and fails after `breaksAt` bytes. */
class Collecting extends Writable {
  readonly received: Buffer[] = [];
  readonly #breaksAt: number;
  #bytes = 0;

  constructor(breaksAt = Infinity) {
    super({ highWaterMark: 1 });
    this.#breaksAt = breaksAt;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    setImmediate(() => {
      // Copies late, as a socket would, which detects a driver that reuses the memory too early.
      this.received.push(Buffer.from(chunk));
      this.#bytes += chunk.length;
      done(this.#bytes >= this.#breaksAt ? new Error('Broken off') : undefined);
    });
  }
}
