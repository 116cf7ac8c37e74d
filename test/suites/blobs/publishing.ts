/** Tests of publishing: an upload becomes the blob of its digest. */
import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { bytesOf } from '../../kit/registry/byte-source.ts';
import {
  chunks,
  digestOf,
  expectCode,
  expectUpload,
  generationOf,
  largeBytes,
  listOf,
  publish,
  readAll,
} from './content.ts';
import type { BlobsTest } from './content.ts';

export function describePublishing(blobsTest: BlobsTest): void {
  blobsTest('ends the upload and makes the blob visible', async ({ blobs }) => {
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

  blobsTest('discards an upload whose blob exists already', async ({ blobs }) => {
    const digest = await publish(blobs, Buffer.from('hello'));
    const generation = await generationOf(blobs, digest);
    await blobs.createUpload('two');
    await blobs.appendUpload('two', 0, chunks('hello'));
    await blobs.publishUpload('two', digest);
    expect(await blobs.statUpload('two')).toBeUndefined();
    expect((await readAll(blobs, digest)).toString()).toBe('hello');
    expect(await generationOf(blobs, digest)).toBe(generation);
  });

  blobsTest('atomically replaces a damaged blob, whose size is wrong', async ({ data, blobs }) => {
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

  blobsTest('does not publish an upload that was written to after its digest was computed', async ({ blobs }) => {
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
    'does not publish %i bytes under the digest of other bytes',
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

  blobsTest('publishes one blob from many uploads at once', async ({ blobs }) => {
    const bytes = randomBytes(100_000);
    const digests = await Promise.all(Array.from({ length: 16 }, () => publish(blobs, bytes)));
    expect(new Set(digests).size).toBe(1);
    expect(Buffer.compare(await readAll(blobs, digestOf(bytes)), bytes)).toBe(0);
    expect(await listOf(blobs.list())).toStrictEqual([digestOf(bytes)]);
    expect(await listOf(blobs.listUploads())).toStrictEqual([]);
  });

  blobsTest('publishes an upload once, with concurrent calls', async ({ blobs }) => {
    const digest = digestOf(Buffer.from('abc'));
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, chunks('abc'));
    const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => blobs.publishUpload('one', digest)));
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await readAll(blobs, digest)).toString()).toBe('abc');
  });
}
