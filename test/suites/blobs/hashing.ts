/** Tests of the digest that a driver computes while bytes arrive, and of the threads that compute it. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../core/clock/testing/manual-clock.ts';
import { systemClock } from '../../../core/clock/system-clock.ts';
import { HashThreads } from '../../../core/hash/hash-threads.ts';
import { bytesOf } from '../../kit/registry/byte-source.ts';
import { digestOf, expectCode, largeBytes, piecesOf, publish, readAll } from './content.ts';
import type { BlobsData, BlobsTest } from './content.ts';

export function describeHashing(blobsTest: BlobsTest): void {
  blobsTest('computes the digest of an upload after each append, with either algorithm', async ({ blobs }) => {
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

  blobsTest('hashes through many appends without computing a digest in between', async ({ blobs }) => {
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

  blobsTest('hashes exactly the bytes that were written before a source failed', async ({ blobs }) => {
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

  blobsTest('hashes many uploads at once, whose appends alternate, without mixing them up', async ({ blobs }) => {
    const contents = Array.from({ length: 6 }, () => randomBytes(1_500_000));
    await Promise.all(
      contents.map(async (bytes, index) => {
        const uploadId = `upload-${index}`;
        await blobs.createUpload(uploadId);
        for (let offset = 0; offset < bytes.length;) {
          const part = bytes.subarray(offset, offset + 400_000 + index);
          const appends = [1, 2].map(() => blobs.appendUpload(uploadId, offset, bytesOf(...piecesOf(part))));
          const [rejected, ...more] = (await Promise.allSettled(appends)).filter(({ status }) => status === 'rejected');
          // The second append overlaps the first, or follows it.
          expect(rejected).toMatchObject({
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

  blobsTest('reads the bytes again when an earlier upload with the same ID was hashed', async ({ blobs }) => {
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

export function describeHashes(create: () => Promise<BlobsData>): void {
  test('releases the thread of an upload that is cancelled, or that receives no bytes for ten minutes', async () => {
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

  test('continues when a hashing thread ends', async () => {
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
