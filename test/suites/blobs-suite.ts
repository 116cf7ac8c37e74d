/** The suite that every blob driver passes. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Blobs } from '../../core/blobs/blobs.ts';
import { bytesOf } from '../kit/registry/byte-source.ts';
import { digestOf, expectCode, hangingAfter, listOf, parts, publish, readAll } from './blobs/content.ts';
import type { BlobsData, BlobsTest } from './blobs/content.ts';
import { describeHashes, describeHashing } from './blobs/hashing.ts';
import { describePublishing } from './blobs/publishing.ts';
import { describeReading } from './blobs/reading.ts';
import { describeUploads } from './blobs/uploads.ts';

/** Declares the tests of a driver; `create` creates new, empty data. */
export function describeBlobs(name: string, create: () => Promise<BlobsData>): void {
  const blobsTest: BlobsTest = test.extend<{ data: BlobsData; blobs: Blobs }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads the needed fixtures from the pattern
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

function describeClosing(create: () => Promise<BlobsData>): void {
  test.each([6, 3_000_000])(
    'has blobs and uploads of %i bytes when it is opened again, and continues the uploads',
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

  test('aborts appends when it is closed, keeps their bytes, and rejects later calls', async () => {
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
