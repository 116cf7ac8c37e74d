import { createHash } from 'node:crypto';
import { link, mkdir, open, readdir, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { bytesOf } from '../../../test/kit/registry/byte-source.ts';
import { describeBlobs } from '../../../test/suites/blobs-suite.ts';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../../log/log.ts';
import { FileLayout } from './layout.ts';
import { openFileBlobs } from './filesystem.ts';
import { hashing } from '../../../test/kit/registry/hashing.ts';

const log = silentLog();

describeBlobs('Files', async () => {
  const folder = await temporaryFolder();
  return {
    open: (parts) => openFileBlobs({ ...parts, folder: folder.path, log }),
    truncate: (digest, sizeBytes) => truncate(new FileLayout(folder.path).blobPath(digest), sizeBytes),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
});

const bytes = Buffer.from('hello');
const hex = createHash('sha256').update(bytes).digest('hex');
const digest = `sha256:${hex}`;
const twice = `sha256:${createHash('sha256').update(bytes).update(bytes).digest('hex')}`;

describe('Files', () => {
  test('are stored as `layout.ts` describes', async () => {
    await using folder = await temporaryFolder();
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    await blobs.createUpload('one');
    expect(existsSync(join(folder.path, 'uploads/one'))).toBe(true);
    await blobs.appendUpload('one', 0, bytesOf(bytes));
    await blobs.publishUpload('one', digest);
    const files = await readdir(folder.path, { recursive: true, withFileTypes: true });
    const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
    expect(paths).toStrictEqual([join(folder.path, 'blobs/sha256', hex.slice(0, 2), hex)]);
  });

  test('cannot be written through an upload whose name survived its publication', async () => {
    await using folder = await temporaryFolder();
    {
      await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
      await blobs.createUpload('one');
      await blobs.appendUpload('one', 0, bytesOf(bytes));
      await blobs.publishUpload('one', digest);
      await link(join(folder.path, 'blobs/sha256', hex.slice(0, 2), hex), join(folder.path, 'uploads/one'));
    }
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    expect(await blobs.statUpload('one')).toBeUndefined();
    expect(await blobs.stat(digest)).toMatchObject({ sizeBytes: bytes.length });
  });

  test('ignore files and folders of other programs', async () => {
    await using folder = await temporaryFolder();
    for (const path of ['uploads/lost+found', 'blobs/sha256/lost+found', 'blobs/sha256/00'])
      await mkdir(join(folder.path, path), { recursive: true });
    for (const path of ['uploads/.DS_Store', 'blobs/sha256/.DS_Store', 'blobs/sha256/00/.DS_Store'])
      await writeFile(join(folder.path, path), 'not ours');
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    expect(await Array.fromAsync(blobs.listUploads())).toEqual([]);
    expect(await Array.fromAsync(blobs.list())).toEqual([]);
  });

  test.runIf(existsSync('/dev/full'))('report that there is no space left', async () => {
    await using folder = await temporaryFolder();
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    await blobs.createUpload('one');
    await unlink(join(folder.path, 'uploads/one'));
    await symlink('/dev/full', join(folder.path, 'uploads/one'));
    const append = blobs.appendUpload('one', 0, bytesOf(bytes));
    await expect(append).rejects.toMatchObject({ name: 'BlobsError', code: 'no-space' });
  });

  test.runIf(existsSync('/dev/null'))('discard an upload that cannot be made durable, and report that', async () => {
    await using folder = await temporaryFolder();
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    await blobs.createUpload('one');
    await unlink(join(folder.path, 'uploads/one'));
    const zeros = Buffer.alloc(1 << 20);
    // It accepts every write and keeps nothing, so it cannot be synced.
    await symlink('/dev/null', join(folder.path, 'uploads/one'));
    const append = blobs.appendUpload('one', 0, bytesOf(...Array.from({ length: 20 }, () => zeros)));
    await expect(append).rejects.toMatchObject({ name: 'BlobsError', code: 'unavailable' });
    expect(await blobs.statUpload('one')).toBeUndefined();
  });

  test('report that their folder cannot be used', async () => {
    await using folder = await temporaryFolder();
    const opening = openFileBlobs({ hashing, folder: '/dev/null/blobs', log });
    await expect(opening).rejects.toMatchObject({ name: 'BlobsError', code: 'unavailable' });
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    await folder[Symbol.asyncDispose]();
    await expect(blobs.ping()).rejects.toMatchObject({ name: 'BlobsError', code: 'unavailable' });
    await expect(blobs.createUpload('one')).rejects.toMatchObject({ code: 'unavailable' });
  });

  test.runIf(existsSync('/proc/self/fd'))('leave no file open', async () => {
    await using folder = await temporaryFolder();
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    const openFiles = async () => (await readdir('/proc/self/fd')).length;
    // Small blobs, so that no garbage is collected meanwhile: Node would close files that it collects, with a warning.
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const before = await openFiles();
    for (let round = 0; round < 10; round += 1) {
      await blobs.createUpload('one');
      await blobs.appendUpload('one', 0, bytesOf(bytes));
      await expect(blobs.appendUpload('one', 0, bytesOf(bytes))).rejects.toMatchObject({
        code: 'wrong-offset',
      });
      await expect(blobs.publishUpload('one', twice)).rejects.toMatchObject({ code: 'digest-mismatch' });
      await expect(blobs.appendUpload('one', 5, failing())).rejects.toThrow('Connection lost');
      await blobs.publishUpload('one', twice);
      for await (const listed of blobs.list()) {
        expect(listed).toBe(twice);
        break;
      }
      await expect(blobs.read(twice, { start: 2, end: 1 })).rejects.toThrow(RangeError);
      const unread = await blobs.read(twice);
      const halfRead = await blobs.read(twice);
      for await (const _ of halfRead ?? []) break;
      unread?.destroy();
      expect(await blobs.delete(twice)).toBe(true);
    }
    await expect.poll(openFiles).toBeLessThanOrEqual(before);
    process.off('warning', onWarning);
    expect(warnings).toStrictEqual([]);
  });

  test.runIf(existsSync('/proc/self/fd'))('leave no file open if the disk does not return its size', async () => {
    await using folder = await temporaryFolder();
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    await blobs.createUpload('one');
    await blobs.appendUpload('one', 0, bytesOf(bytes));
    await blobs.publishUpload('one', digest);
    const openFiles = async () => (await readdir('/proc/self/fd')).length;
    const before = await openFiles();
    // No disk here can be made to fail.
    await using file = await open('/dev/null');
    const stat = vi.spyOn(Object.getPrototypeOf(file) as FileHandle, 'stat');
    stat.mockRejectedValueOnce(Object.assign(new Error('EIO: i/o error, fstat'), { errno: -5, code: 'EIO' }));
    await expect(blobs.open(digest)).rejects.toMatchObject({ name: 'BlobsError', code: 'unavailable' });
    stat.mockRestore();
    await file.close();
    await expect.poll(openFiles).toBeLessThanOrEqual(before);
  });
});

async function* failing(): AsyncGenerator<readonly Uint8Array[]> {
  yield [bytes];
  throw new Error('Connection lost');
}
