/** Tests of uploads before they are published. */
import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { chunks, digestOf, expectCode, expectUpload, hangingAfter, listOf, readAll } from './content.ts';
import type { BlobsTest } from './content.ts';

export function describeUploads(blobsTest: BlobsTest): void {
  blobsTest('creates an empty upload, once', async ({ blobs }) => {
    const before = Date.now();
    await blobs.createUpload('one');
    const info = await blobs.statUpload('one');
    expect(info?.sizeBytes).toBe(0);
    // File systems store times in steps of a few milliseconds.
    expect(info?.touchedAt.getTime()).toBeGreaterThan(before - 100);
    await expectCode(blobs.createUpload('one'), 'upload-exists');
    expect(await listOf(blobs.listUploads())).toStrictEqual(['one']);
  });

  blobsTest('reports an upload that was never created as unknown', async ({ blobs }) => {
    expect(await blobs.statUpload('one')).toBeUndefined();
    await expectCode(blobs.digestUpload('one', 'sha256'), 'upload-unknown');
    expect(await blobs.deleteUpload('one')).toBe(false);
    await expectCode(blobs.appendUpload('one', 0, chunks('a')), 'upload-unknown');
    await expectCode(blobs.publishUpload('one', digestOf(Buffer.alloc(0))), 'upload-unknown');
    expect(await listOf(blobs.listUploads())).toStrictEqual([]);
  });

  blobsTest('rejects strings that are not upload IDs', async ({ blobs }) => {
    for (const uploadId of ['', '.', '..', '../x', 'a/b', 'a\0', 'a b', 'a'.repeat(65)]) {
      await expect(blobs.createUpload(uploadId)).rejects.toThrow(TypeError);
      await expect(blobs.statUpload(uploadId)).rejects.toThrow(TypeError);
      await expect(blobs.appendUpload(uploadId, 0, chunks('a'))).rejects.toThrow(TypeError);
      await expect(blobs.deleteUpload(uploadId)).rejects.toThrow(TypeError);
    }
  });

  blobsTest('appends bytes at the end of the upload, and nowhere else', async ({ blobs }) => {
    await blobs.createUpload('one');
    expect(await blobs.appendUpload('one', 0, chunks('ab', '', 'c'))).toBe(3);
    await expectCode(blobs.appendUpload('one', 2, chunks('x')), 'wrong-offset');
    await expectCode(blobs.appendUpload('one', 4, chunks('x')), 'wrong-offset');
    expect(await blobs.appendUpload('one', 3, chunks())).toBe(3);
    expect(await blobs.appendUpload('one', 3, Readable.from([[Buffer.from('d'), Buffer.from('e')]]))).toBe(5);
    expect(await blobs.statUpload('one')).toMatchObject({ sizeBytes: 5 });
    await expectUpload(blobs, 'abcde');
  });

  blobsTest('deletes an upload', async ({ blobs }) => {
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
    const pushed: Uint8Array[] = Array.from({ length: 40 }, (_, i) => new Uint8Array(70_000).fill(i));
    const whole = Buffer.concat(pushed);
    expect(await blobs.appendUpload('one', 0, Readable.from([pushed.slice(0, 17), pushed.slice(17)]))).toBe(
      whole.length,
    );
    expect(pushed.every(({ byteLength }) => byteLength === 0)).toBe(true);
    await blobs.publishUpload('one', digestOf(whole));
    expect(digestOf(await readAll(blobs, digestOf(whole)))).toBe(digestOf(whole));
  });

  blobsTest('stops when the signal aborts, even if the source hangs, and keeps what arrived', async ({ blobs }) => {
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

  blobsTest('fails an append whose upload is deleted meanwhile', async ({ blobs }) => {
    await blobs.createUpload('one');
    const hanging = hangingAfter('abc');
    const append = blobs.appendUpload('one', 0, hanging.source);
    await hanging.hangs;
    expect(await blobs.deleteUpload('one')).toBe(true);
    hanging.end();
    await expectCode(append, 'upload-unknown');
    expect(await blobs.statUpload('one')).toBeUndefined();
  });

  blobsTest('releases the source when the offset is wrong', async ({ blobs }) => {
    await blobs.createUpload('one');
    await expectCode(blobs.appendUpload('one', 1, chunks('x')), 'wrong-offset');
    expect(await blobs.appendUpload('one', 0, chunks('x'))).toBe(1);
  });
}
