/** What every driver of blobs must do. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import type { TestAPI } from 'vitest';
import type { Clock } from '../../core/clock/clock.ts';
import { ManualClock } from '../../core/clock/manual-clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { BlobsError } from '../../core/blobs/blobs.ts';
import type { Blobs, BlobsErrorCode, ByteSource, OpenBlob } from '../../core/blobs/blobs.ts';
import { HashThreads } from '../../core/hash/hash-threads.ts';
import { bytesOf } from '../kit/registry/byte-source.ts';

/** Data that outlives the blobs opened on it. */
export interface BlobsData extends AsyncDisposable {
  open(parts: OpenParts): Promise<Blobs>;
  /** Damages a blob: of its bytes only so many are left. */
  truncate(digest: string, sizeBytes: number): Promise<void>;
}

interface OpenParts {
  readonly hashing: HashThreads;
  readonly clock: Clock;
}

const parts: OpenParts = { hashing: new HashThreads(systemClock), clock: systemClock };

/** More than any driver reads or writes at a time. */
const largeBytes = 3 * 1024 * 1024 + 17;

/** Describes a driver; `create` makes new, empty data. */
export function describeBlobs(name: string, create: () => Promise<BlobsData>): void {
  const blobsTest: BlobsTest = test.extend<{ data: BlobsData; blobs: Blobs }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads from the pattern what a fixture needs
    data: async ({}, use) => {
      await using data = await create();
      await use(data);
    },
    blobs: async ({ data }, use) => {
      await using blobs = await data.open(parts);
      await use(blobs);
    },
  });
  describe(`${name}: blobs`, () => {
    describeReading(blobsTest);
  });
  describe(`${name}: uploads`, () => {
    describeUploads(blobsTest);
  });
  describe(`${name}: publishing`, () => {
    describePublishing(blobsTest);
  });
  describe(`${name}: hashing`, () => {
    describeHashing(blobsTest);
    describeHashes(create);
  });
  describe(`${name}: closing`, () => {
    describeClosing(create);
  });
}

type BlobsTest = TestAPI<{ data: BlobsData; blobs: Blobs }>;

function describeReading(blobsTest: BlobsTest): void {
  blobsTest('answers', async ({ blobs }) => {
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
    blobsTest(`gives back ${what}`, async ({ blobs }) => {
      const digest = await publish(blobs, bytes);
      expect(await blobs.stat(digest)).toMatchObject({ sizeBytes: bytes.length });
      expect(Buffer.compare(await readAll(blobs, digest), bytes)).toBe(0);
    });
  }

  blobsTest('gives back ranges', async ({ blobs }) => {
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

  blobsTest('copies to a stream what it was asked for, and leaves the stream open', async ({ blobs }) => {
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

  blobsTest('copies to many streams at a time, some of which break off, and mixes nothing up', async ({ blobs }) => {
    const contents = Array.from({ length: 12 }, () => randomBytes(largeBytes));
    const digests = await Promise.all(contents.map(async (bytes) => await publish(blobs, bytes)));
    const copies = digests.flatMap((digest, index) => [
      { digest, index, breaksAt: Infinity },
      { digest, index, breaksAt: index * 1e5 },
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

  blobsTest('lists what there is', async ({ blobs }) => {
    const digests = [
      await publish(blobs, Buffer.from('a')),
      await publish(blobs, Buffer.from('b')),
      await publish(blobs, Buffer.from('c'), 'sha512'),
    ];
    expect((await listOf(blobs.list())).toSorted()).toStrictEqual(digests.toSorted());
    await blobs.delete(digests[0] as string);
    expect((await listOf(blobs.list())).toSorted()).toStrictEqual(digests.slice(1).toSorted());
  });

  blobsTest('reads on while a blob is deleted, then has it no more', async ({ blobs }) => {
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

  blobsTest('deletes a blob of the generation that is named, and no later one', async ({ blobs }) => {
    const bytes = randomBytes(1_000);
    const digest = await publish(blobs, bytes);
    const first = await generationOf(blobs, digest);
    // Published once more, it is the same blob.
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

  blobsTest('refuses what is not a digest', async ({ blobs }) => {
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

function describeUploads(blobsTest: BlobsTest): void {
  blobsTest('begins an upload of no bytes, once', async ({ blobs }) => {
    const before = Date.now();
    await blobs.createUpload('one');
    const info = await blobs.statUpload('one');
    expect(info?.sizeBytes).toBe(0);
    // File systems keep the time in steps of a few milliseconds.
    expect(info?.touchedAt.getTime()).toBeGreaterThan(before - 100);
    await expectCode(blobs.createUpload('one'), 'upload-exists');
    expect(await listOf(blobs.listUploads())).toStrictEqual(['one']);
  });

  blobsTest('knows no upload that was not begun', async ({ blobs }) => {
    expect(await blobs.statUpload('one')).toBeUndefined();
    await expectCode(blobs.digestUpload('one', 'sha256'), 'upload-unknown');
    expect(await blobs.deleteUpload('one')).toBe(false);
    await expectCode(blobs.appendUpload('one', 0, chunks('a')), 'upload-unknown');
    await expectCode(blobs.publishUpload('one', digestOf(Buffer.alloc(0))), 'upload-unknown');
    expect(await listOf(blobs.listUploads())).toStrictEqual([]);
  });

  blobsTest('refuses what is not the ID of an upload', async ({ blobs }) => {
    for (const uploadId of ['', '.', '..', '../x', 'a/b', 'a\0', 'a b', 'a'.repeat(65)]) {
      await expect(blobs.createUpload(uploadId)).rejects.toThrow(TypeError);
      await expect(blobs.statUpload(uploadId)).rejects.toThrow(TypeError);
      await expect(blobs.appendUpload(uploadId, 0, chunks('a'))).rejects.toThrow(TypeError);
      await expect(blobs.deleteUpload(uploadId)).rejects.toThrow(TypeError);
    }
  });

  blobsTest('adds bytes where the upload ends, and nowhere else', async ({ blobs }) => {
    await blobs.createUpload('one');
    expect(await blobs.appendUpload('one', 0, chunks('ab', '', 'c'))).toBe(3);
    await expectCode(blobs.appendUpload('one', 2, chunks('x')), 'wrong-offset');
    await expectCode(blobs.appendUpload('one', 4, chunks('x')), 'wrong-offset');
    expect(await blobs.appendUpload('one', 3, chunks())).toBe(3);
    expect(await blobs.appendUpload('one', 3, Readable.from([[Buffer.from('d'), Buffer.from('e')]]))).toBe(5);
    expect(await blobs.statUpload('one')).toMatchObject({ sizeBytes: 5 });
    await expectUpload(blobs, 'abcde');
  });

  blobsTest('forgets an upload that is deleted', async ({ blobs }) => {
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, chunks('abc'));
    expect(await blobs.deleteUpload('one')).toBe(true);
    expect(await blobs.deleteUpload('one')).toBe(false);
    expect(await blobs.statUpload('one')).toBeUndefined();
    await blobs.createUpload('one');
    expect(await blobs.statUpload('one')).toMatchObject({ sizeBytes: 0 });
  });

  blobsTest('keeps what arrived before the source failed', async ({ blobs }) => {
    await blobs.createUpload('one');
    const failure = new Error('Connection lost');
    async function* failing(): AsyncGenerator<readonly Uint8Array[]> {
      yield* chunks('abc');
      throw failure;
    }
    await expect(blobs.appendUpload('one', 0, failing())).rejects.toBe(failure);
    expect(await blobs.statUpload('one')).toMatchObject({ sizeBytes: 3 });
    expect(await blobs.appendUpload('one', 3, chunks('def'))).toBe(6);
    await expectUpload(blobs, 'abcdef');
  });

  blobsTest('frees the memory of chunks once they are written', async ({ blobs }) => {
    await blobs.createUpload('one');
    const given: Uint8Array[] = Array.from({ length: 40 }, (_, i) => new Uint8Array(70_000).fill(i));
    const whole = Buffer.concat(given);
    expect(await blobs.appendUpload('one', 0, Readable.from([given.slice(0, 17), given.slice(17)]))).toBe(whole.length);
    expect(given.every(({ byteLength }) => byteLength === 0)).toBe(true);
    await blobs.publishUpload('one', digestOf(whole));
    expect(digestOf(await readAll(blobs, digestOf(whole)))).toBe(digestOf(whole));
  });

  blobsTest('stops when the signal aborts, though the source hangs, and keeps what arrived', async ({ blobs }) => {
    await blobs.createUpload('one');
    const abort = new AbortController();
    const hanging = hangingAfter('abc');
    const append = blobs.appendUpload('one', 0, hanging.source, { signal: abort.signal });
    await hanging.hangs;
    await expectCode(blobs.appendUpload('one', 3, chunks('x')), 'upload-busy');
    await expectCode(blobs.publishUpload('one', digestOf(Buffer.from('abc'))), 'upload-busy');
    const reason = new Error('Client left');
    abort.abort(reason);
    await expect(append).rejects.toBe(reason);
    await expect(blobs.appendUpload('one', 3, chunks('x'), { signal: abort.signal })).rejects.toBe(reason);
    expect(await blobs.statUpload('one')).toMatchObject({ sizeBytes: 3 });
    expect(await blobs.appendUpload('one', 3, chunks('d'))).toBe(4);
    await expectUpload(blobs, 'abcd');
  });

  blobsTest('tells an append that its upload was deleted meanwhile', async ({ blobs }) => {
    await blobs.createUpload('one');
    const hanging = hangingAfter('abc');
    const append = blobs.appendUpload('one', 0, hanging.source);
    await hanging.hangs;
    expect(await blobs.deleteUpload('one')).toBe(true);
    hanging.goOn();
    await expectCode(append, 'upload-unknown');
    expect(await blobs.statUpload('one')).toBeUndefined();
  });

  blobsTest('lets go of the source when the offset is wrong', async ({ blobs }) => {
    await blobs.createUpload('one');
    await expectCode(blobs.appendUpload('one', 1, chunks('x')), 'wrong-offset');
    expect(await blobs.appendUpload('one', 0, chunks('x'))).toBe(1);
  });
}

function describePublishing(blobsTest: BlobsTest): void {
  blobsTest('ends the upload, and shows the blob', async ({ blobs }) => {
    const bytes = Buffer.from('hello');
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, bytesOf(bytes));
    expect(await blobs.stat(digestOf(bytes))).toBeUndefined();
    await blobs.publishUpload('one', digestOf(bytes));
    expect(await blobs.stat(digestOf(bytes))).toMatchObject({ sizeBytes: 5 });
    expect(await blobs.statUpload('one')).toBeUndefined();
    expect(await listOf(blobs.listUploads())).toStrictEqual([]);
    await expectCode(blobs.publishUpload('one', digestOf(bytes)), 'upload-unknown');
    expect((await readAll(blobs, digestOf(bytes))).toString()).toBe('hello');
  });

  blobsTest('discards an upload of a blob that exists', async ({ blobs }) => {
    const digest = await publish(blobs, Buffer.from('hello'));
    const generation = await generationOf(blobs, digest);
    await blobs.createUpload('two');
    await blobs.appendUpload('two', 0, chunks('hello'));
    await blobs.publishUpload('two', digest);
    expect(await blobs.statUpload('two')).toBeUndefined();
    expect((await readAll(blobs, digest)).toString()).toBe('hello');
    expect(await generationOf(blobs, digest)).toBe(generation);
  });

  blobsTest('replaces a blob of another size, which is damaged, in one step', async ({ data, blobs }) => {
    const digest = await publish(blobs, Buffer.from('whole'));
    await data.truncate(digest, 3);
    const readers = Array.from({ length: 20 }, async () => (await readAll(blobs, digest)).toString());
    await blobs.createUpload('two');
    await blobs.appendUpload('two', 0, chunks('whole'));
    await blobs.publishUpload('two', digest);
    for (const text of await Promise.all(readers)) expect(text).toBeOneOf(['who', 'whole']);
    expect(await blobs.stat(digest)).toMatchObject({ sizeBytes: 5 });
    expect((await readAll(blobs, digest)).toString()).toBe('whole');
    expect(await blobs.statUpload('two')).toBeUndefined();
    expect(await listOf(blobs.list())).toStrictEqual([digest]);
  });

  blobsTest('does not publish what was written to since its digest was asked', async ({ blobs }) => {
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, chunks('checked'));
    const { digest } = await blobs.digestUpload('one', 'sha256');
    expect(digest).toBe(digestOf(Buffer.from('checked')));
    await blobs.appendUpload('one', 7, chunks(' and more'));
    await expectCode(blobs.publishUpload('one', digest), 'digest-mismatch');
    expect(await blobs.stat(digest)).toBeUndefined();
    expect(await blobs.appendUpload('one', 16, chunks('.'))).toBe(17);
    await expectUpload(blobs, 'checked and more.');
  });

  blobsTest.for([5, largeBytes])(
    'does not publish %i bytes under another digest than theirs',
    async (size, { blobs }) => {
      const bytes = randomBytes(size);
      const other = digestOf(randomBytes(size));
      await blobs.createUpload('one');
      await blobs.appendUpload('one', 0, bytesOf(bytes));
      for (const wrong of [other, digestOf(bytes.subarray(1)), other.replace('sha256', 'sha512') + other.slice(7)]) {
        await expectCode(blobs.publishUpload('one', wrong), 'digest-mismatch');
        expect(await blobs.stat(wrong)).toBeUndefined();
      }
      expect(await blobs.statUpload('one')).toMatchObject({ sizeBytes: size });
      const more = randomBytes(300_000);
      await blobs.appendUpload('one', size, bytesOf(more));
      await expectCode(blobs.publishUpload('one', digestOf(bytes)), 'digest-mismatch');
      const whole = Buffer.concat([bytes, more]);
      await blobs.publishUpload('one', digestOf(whole));
      expect(Buffer.compare(await readAll(blobs, digestOf(whole)), whole)).toBe(0);
      expect(await listOf(blobs.list())).toStrictEqual([digestOf(whole)]);
      expect(await listOf(blobs.listUploads())).toStrictEqual([]);
    },
  );

  blobsTest('publishes one blob from many uploads at a time', async ({ blobs }) => {
    const bytes = randomBytes(100_000);
    const digests = await Promise.all(Array.from({ length: 16 }, () => publish(blobs, bytes)));
    expect(new Set(digests).size).toBe(1);
    expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
    expect(await listOf(blobs.list())).toStrictEqual([digestOf(bytes)]);
    expect(await listOf(blobs.listUploads())).toStrictEqual([]);
  });

  blobsTest('publishes one upload once, however often it is asked at a time', async ({ blobs }) => {
    const digest = digestOf(Buffer.from('abc'));
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, chunks('abc'));
    const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => blobs.publishUpload('one', digest)));
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await readAll(blobs, digest)).toString()).toBe('abc');
  });
}

function describeHashing(blobsTest: BlobsTest): void {
  blobsTest('knows the digest of an upload after each append, in either algorithm', async ({ blobs }) => {
    const bytes = randomBytes(3_500_000);
    await blobs.createUpload('one');
    let offset = 0;
    for (const [index, count] of [1, 1_048_575, 0, 700_000, 999_999, 751_425].entries()) {
      const part = bytes.subarray(offset, offset + count);
      offset = await blobs.appendUpload('one', offset, bytesOf(...piecesOf(part)));
      const received = bytes.subarray(0, offset);
      for (const algorithm of index === 3 ? (['sha512', 'sha256'] as const) : (['sha256'] as const)) {
        const digest = digestOf(received, algorithm);
        expect(await blobs.digestUpload('one', algorithm)).toStrictEqual({ sizeBytes: offset, digest });
      }
    }
    expect(offset).toBe(bytes.length);
    await blobs.publishUpload('one', digestOf(bytes));
    expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
  });

  blobsTest('hashes on through many appends, whose digest nobody asks for', async ({ blobs }) => {
    const bytes = randomBytes(3_500_000);
    await blobs.createUpload('one');
    let offset = 0;
    for (const count of [100, 2_000_000, 0, 50_000, 50_000, 700_000, 699_900]) {
      offset = await blobs.appendUpload('one', offset, bytesOf(...piecesOf(bytes.subarray(offset, offset + count))));
    }
    await blobs.publishUpload('one', digestOf(bytes));
    expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
  });

  blobsTest('publishes under a sha512, announced or not', async ({ blobs }) => {
    for (const algorithm of ['sha512', 'sha256'] as const) {
      const bytes = randomBytes(1_500_000);
      await blobs.createUpload('one');
      await blobs.appendUpload('one', 0, bytesOf(...piecesOf(bytes.subarray(0, 800_000))), { algorithm });
      await blobs.appendUpload('one', 800_000, bytesOf(...piecesOf(bytes.subarray(800_000))), { algorithm });
      await blobs.publishUpload('one', digestOf(bytes, 'sha512'));
      expect(Buffer.compare(await readAll(blobs, digestOf(bytes, 'sha512')), bytes)).toBe(0);
    }
  });

  blobsTest('counts what was written before a source failed, and nothing else', async ({ blobs }) => {
    const bytes = randomBytes(2_000_000);
    await blobs.createUpload('one');
    const failure = new Error('Connection lost');
    async function* failing(): AsyncGenerator<readonly Uint8Array[]> {
      yield* bytesOf(...piecesOf(bytes.subarray(0, 1_200_000)));
      throw failure;
    }
    await expect(blobs.appendUpload('one', 0, failing())).rejects.toBe(failure);
    const { sizeBytes = 0 } = (await blobs.statUpload('one')) ?? {};
    expect(sizeBytes).toBe(1_200_000);
    await blobs.appendUpload('one', sizeBytes, bytesOf(bytes.subarray(sizeBytes)));
    await blobs.publishUpload('one', digestOf(bytes));
    expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
  });

  blobsTest('hashes many uploads at a time, whose appends alternate, and mixes nothing up', async ({ blobs }) => {
    const contents = Array.from({ length: 12 }, () => randomBytes(1_500_000));
    await Promise.all(
      contents.map(async (bytes, index) => {
        const uploadId = `upload-${index}`;
        await blobs.createUpload(uploadId);
        for (let offset = 0; offset < bytes.length;) {
          const part = bytes.subarray(offset, offset + 400_000 + index);
          const appends = [1, 2].map(() => blobs.appendUpload(uploadId, offset, bytesOf(...piecesOf(part))));
          const [refused, ...more] = (await Promise.allSettled(appends)).filter(({ status }) => status === 'rejected');
          // The one that comes second finds the other one at work, or done.
          expect(refused).toMatchObject({
            reason: { code: expect.toBeOneOf(['upload-busy', 'wrong-offset']) as string },
          });
          expect(more).toStrictEqual([]);
          offset += part.length;
        }
        await blobs.publishUpload(uploadId, digestOf(bytes));
        expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
      }),
    );
  });

  blobsTest('reads again what was hashed as something else, of an upload with the same ID', async ({ blobs }) => {
    const [before, after] = [randomBytes(700_000), randomBytes(700_000)];
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, bytesOf(before));
    expect((await blobs.digestUpload('one', 'sha256')).digest).toBe(digestOf(before));
    await blobs.deleteUpload('one');
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, bytesOf(after));
    await expectCode(blobs.publishUpload('one', digestOf(before)), 'digest-mismatch');
    await blobs.publishUpload('one', digestOf(after));
  });

  blobsTest('stops reading for a digest when the signal aborts', async ({ blobs }) => {
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, bytesOf(randomBytes(largeBytes)), { algorithm: 'sha512' });
    const reason = new Error('Closing');
    await expect(blobs.digestUpload('one', 'sha256', AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(await blobs.statUpload('one')).toMatchObject({ sizeBytes: largeBytes });
  });
}

function describeHashes(create: () => Promise<BlobsData>): void {
  test('holds no thread for an upload that is cancelled, or stands still for ten minutes', async () => {
    const clock = new ManualClock(new Date());
    await using hashing = new HashThreads(clock);
    await using data = await create();
    await using blobs = await data.open({ hashing, clock });
    const bytes = randomBytes(2_000_000);
    await blobs.createUpload('cancelled');
    await blobs.appendUpload('cancelled', 0, bytesOf(bytes));
    expect(hashing.count).toBe(1);
    await blobs.deleteUpload('cancelled');
    await clock.advance(90_000);
    expect(hashing.count).toBe(0);
    await blobs.createUpload('idle');
    await blobs.appendUpload('idle', 0, bytesOf(bytes));
    await clock.advance(540_000);
    expect(hashing.count).toBe(1);
    await clock.advance(180_000);
    expect(hashing.count).toBe(0);
    await blobs.publishUpload('idle', digestOf(bytes));
    await clock.advance(90_000);
    expect(hashing.count).toBe(0);
    expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
  });

  test('needs no thread for a small upload', async () => {
    await using hashing = new HashThreads(systemClock);
    await using data = await create();
    await using blobs = await data.open({ hashing, clock: systemClock });
    await publish(blobs, randomBytes(200_000));
    expect(hashing.count).toBe(0);
  });

  test('goes on when a thread that hashes ends', async () => {
    await using hashing = new HashThreads(systemClock);
    await using data = await create();
    await using blobs = await data.open({ hashing, clock: systemClock });
    const bytes = randomBytes(2_000_000);
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, bytesOf(bytes.subarray(0, 700_000)));
    await hashing[Symbol.asyncDispose]();
    await blobs.appendUpload('one', 700_000, bytesOf(bytes.subarray(700_000)));
    await blobs.publishUpload('one', digestOf(bytes));
    expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
  });
}

function describeClosing(create: () => Promise<BlobsData>): void {
  test.each([6, 3_000_000])(
    'has blobs and uploads of %i bytes when it is opened again, and goes on with them',
    async (size) => {
      await using data = await create();
      const bytes = randomBytes(size);
      const half = size / 2;
      {
        await using blobs = await data.open(parts);
        await publish(blobs, bytes.subarray(1));
        await blobs.createUpload('one');
        await blobs.appendUpload('one', 0, bytesOf(bytes.subarray(0, half)));
      }
      await using blobs = await data.open(parts);
      expect((await readAll(blobs, digestOf(bytes.subarray(1)))).equals(bytes.subarray(1))).toBe(true);
      expect(await listOf(blobs.listUploads())).toStrictEqual(['one']);
      expect(await blobs.appendUpload('one', half, bytesOf(bytes.subarray(half)))).toBe(size);
      await blobs.publishUpload('one', digestOf(bytes));
      expect((await readAll(blobs, digestOf(bytes))).equals(bytes)).toBe(true);
    },
  );

  test('ends appends when it is closed, keeps their bytes, and refuses what comes after', async () => {
    await using data = await create();
    const blobs = await data.open(parts);
    await blobs.createUpload('one');
    const hanging = hangingAfter('abc');
    const append = expectCode(blobs.appendUpload('one', 0, hanging.source), 'unavailable');
    await hanging.hangs;
    await blobs[Symbol.asyncDispose]();
    await blobs[Symbol.asyncDispose]();
    await append;
    await expectCode(blobs.ping(), 'unavailable');
    await expectCode(blobs.stat(digestOf(Buffer.from('x'))), 'unavailable');
    await expectCode(blobs.createUpload('two'), 'unavailable');
    await using again = await data.open(parts);
    expect(await again.statUpload('one')).toMatchObject({ sizeBytes: 3 });
  });
}

/** A source that gives a text, then nothing until it is told to go on. */
function hangingAfter(text: string): { source: ByteSource; hangs: Promise<void>; goOn: () => void } {
  const reached = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  async function* source(): AsyncGenerator<readonly Uint8Array[]> {
    yield* chunks(text);
    reached.resolve();
    await end.promise;
  }
  return { source: source(), hangs: reached.promise, goOn: end.resolve };
}

function chunks(...texts: string[]): ByteSource {
  return bytesOf(...texts.map((text) => Buffer.from(text)));
}

/** As a socket gives bytes. */
function piecesOf(bytes: Uint8Array): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, i) =>
    bytes.subarray(i * 65_536, (i + 1) * 65_536),
  );
}

function digestOf(bytes: Uint8Array, algorithm: 'sha256' | 'sha512' = 'sha256'): string {
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
}

async function publish(blobs: Blobs, bytes: Uint8Array, algorithm: 'sha256' | 'sha512' = 'sha256'): Promise<string> {
  const uploadId = randomUUID();
  const digest = digestOf(bytes, algorithm);
  await blobs.createUpload(uploadId);
  await blobs.appendUpload(uploadId, 0, bytesOf(bytes));
  await blobs.publishUpload(uploadId, digest);
  return digest;
}

async function generationOf(blobs: Blobs, digest: string): Promise<string | undefined> {
  return (await blobs.stat(digest))?.generation;
}

async function readAll(blobs: Blobs, digest: string): Promise<Buffer> {
  return await buffer((await blobs.read(digest)) as Readable);
}

/** That the upload `one` has this text. */
async function expectUpload(blobs: Blobs, text: string): Promise<void> {
  const expected = { sizeBytes: Buffer.byteLength(text), digest: digestOf(Buffer.from(text)) };
  expect(await blobs.digestUpload('one', 'sha256')).toStrictEqual(expected);
}

async function listOf(list: AsyncIterable<string>): Promise<string[]> {
  const items: string[] = [];
  for await (const item of list) items.push(item);
  return items;
}

async function expectCode(operation: Promise<unknown>, code: BlobsErrorCode): Promise<void> {
  const error: unknown = await operation.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BlobsError);
  expect(error).toHaveProperty('code', code);
}

/** Takes its time, copies what it is given, and breaks off after some bytes. */
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
      // Only now, as a socket would: whoever has used the memory again by then is found out.
      this.received.push(Buffer.from(chunk));
      this.#bytes += chunk.length;
      done(this.#bytes >= this.#breaksAt ? new Error('Broken off') : undefined);
    });
  }
}
