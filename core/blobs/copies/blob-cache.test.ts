// Takes about 3 s
import { createHash, randomBytes } from 'node:crypto';
import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { collectLog } from '../../../test/kit/collect-log.ts';
import { copied } from '../../../test/kit/registry/byte-source.ts';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { ManualClock } from '../../clock/testing/manual-clock.ts';
import { DiskReserve } from '../../files/disk-reserve.ts';
import { BlobCache } from './blob-cache.ts';
import type { BlobInfo } from '../blobs.ts';

const mebibyte = 1024 * 1024;
/** A blob on a server. */
class RemoteBlob {
  readonly bytes: Buffer;
  readonly digest: string;
  readonly info: BlobInfo;
  reads = 0;

  constructor(sizeBytes: number) {
    this.bytes = randomBytes(sizeBytes);
    this.digest = `sha256:${createHash('sha256').update(this.bytes).digest('hex')}`;
    this.info = { sizeBytes, generation: '1' };
  }

  /** Reads the copy as a driver does. @returns the bytes of the copy, if there is one. */
  async fetchChunk(cache: BlobCache, info = this.info): Promise<Buffer | undefined> {
    await using copy = await cache.open(this.digest, info);
    if (copy) return await copied(copy);
    cache.recordMiss(this.digest, info, () => this.read());
    return undefined;
  }

  read(): Readable {
    this.reads += 1;
    return Readable.from([this.bytes.subarray(0, 100_000), this.bytes.subarray(100_000)]);
  }
}

/** Reads until there is a copy. */
async function untilCopied(cache: BlobCache, blob: RemoteBlob | undefined): Promise<void> {
  await expect.poll(async () => (await blob?.fetchChunk(cache))?.equals(blob?.bytes ?? Buffer.alloc(0))).toBe(true);
}

async function openFixture(maxBytes = 10 * mebibyte) {
  const folder = await temporaryFolder();
  // The present, because the system also records when a file was last read.
  const clock = new ManualClock(new Date());
  const { log, lines } = collectLog();
  const open = async (more: { readonly reserve?: DiskReserve } = {}) =>
    await BlobCache.open({ folder: folder.path, maxBytes, freeShare: 0, clock, log, ...more });
  /** All files in the folder. */
  const files = async () => {
    const entries = await readdir(folder.path, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  };
  return { folder: folder.path, clock, lines, open, files, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

test('A blob is copied when it is read for the second time, and later reads use the copy', async () => {
  await using fixture = await openFixture();
  await using cache = await fixture.open();
  const blob = new RemoteBlob(3 * mebibyte + 17);
  expect(await blob.fetchChunk(cache)).toBeUndefined();
  expect(blob.reads).toBe(0);
  await untilCopied(cache, blob);
  expect(blob.reads).toBe(1);
  expect(await blob.fetchChunk(cache)).toEqual(blob.bytes);
  expect([blob.reads, (await fixture.files()).length]).toEqual([1, 1]);
});

test('Small blobs, and blobs larger than half of the limit, are not copied', async () => {
  await using fixture = await openFixture(4 * mebibyte);
  await using cache = await fixture.open();
  const [small, large, middle] = [mebibyte - 1, 2 * mebibyte + 1, mebibyte].map((size) => new RemoteBlob(size));
  for (let asked = 0; asked < 5; asked += 1) for (const blob of [small, large]) await blob?.fetchChunk(cache);
  await untilCopied(cache, middle);
  expect([small?.reads, large?.reads]).toEqual([0, 0]);
});

test('No copy uses the disk space that is reserved for the store', async () => {
  await using fixture = await openFixture();
  const reserve = new DiskReserve({ folder: '/', reserveBytes: Number.MAX_SAFE_INTEGER, clock: fixture.clock });
  await using cache = await fixture.open({ reserve });
  const blob = new RemoteBlob(mebibyte);
  for (let asked = 0; asked < 5; asked += 1) expect(await blob.fetchChunk(cache)).toBeUndefined();
  await cache[Symbol.asyncDispose]();
  expect([blob.reads, await fixture.files()]).toEqual([0, []]);
});

test('A copy of another generation is not used, and is removed when the new generation is copied', async () => {
  await using fixture = await openFixture();
  await using cache = await fixture.open();
  const blob = new RemoteBlob(mebibyte);
  await untilCopied(cache, blob);
  const renewed = { ...blob.info, generation: '2' };
  expect(await blob.fetchChunk(cache, renewed)).toBeUndefined();
  await expect.poll(async () => await blob.fetchChunk(cache, renewed)).toEqual(blob.bytes);
  await expect.poll(fixture.files).toHaveLength(1);
});

test('The least recently used copies are removed first', async () => {
  await using fixture = await openFixture(4 * mebibyte);
  await using cache = await fixture.open();
  const blobs = Array.from({ length: 4 }, () => new RemoteBlob(mebibyte));
  const next = async (blob: RemoteBlob | undefined) => {
    await untilCopied(cache, blob);
    await fixture.clock.advance(120_000);
  };
  for (const blob of blobs) await next(blob);
  const [first, second] = blobs;
  expect(await first?.fetchChunk(cache)).toBeDefined();
  await next(new RemoteBlob(mebibyte));
  expect((await fixture.files()).length).toBe(4);
  expect(await first?.fetchChunk(cache)).toBeDefined();
  expect(await second?.fetchChunk(cache)).toBeUndefined();
});

test('The copy of a deleted blob is removed', async () => {
  await using fixture = await openFixture();
  await using cache = await fixture.open();
  const blob = new RemoteBlob(mebibyte);
  await untilCopied(cache, blob);
  await cache.remove(blob.digest);
  expect(await fixture.files()).toEqual([]);
});

test('No copy is used for longer than a day', async () => {
  await using fixture = await openFixture();
  await using cache = await fixture.open();
  const blob = new RemoteBlob(mebibyte);
  await untilCopied(cache, blob);
  await fixture.clock.advance(23 * 3_600_000);
  expect(await blob.fetchChunk(cache)).toBeDefined();
  await fixture.clock.advance(2 * 3_600_000);
  await expect.poll(fixture.files).toEqual([]);
  expect(await blob.fetchChunk(cache)).toBeUndefined();
});

test('A copy that fails leaves no file, is logged, and is made the next time', async () => {
  await using fixture = await openFixture();
  await using cache = await fixture.open();
  const blob = new RemoteBlob(mebibyte);
  const failing = () =>
    new Readable({
      read() {
        this.push(blob.bytes.subarray(0, 1_000));
        this.destroy(new Error('The server has stopped'));
      },
    });
  for (const _time of [1, 2]) cache.recordMiss(blob.digest, blob.info, failing);
  await expect.poll(() => fixture.lines.length).toBe(1);
  expect(fixture.lines[0]).toMatchObject({
    msg: 'Cannot keep a copy of a blob',
    digest: blob.digest,
  });
  await expect.poll(fixture.files).toEqual([]);
  await untilCopied(cache, blob);
});

test('Closing aborts a copy in progress, and the next process uses the complete copies', async () => {
  await using fixture = await openFixture();
  const [blob, endless] = [new RemoteBlob(mebibyte), new RemoteBlob(mebibyte)];
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  {
    await using cache = await fixture.open();
    await untilCopied(cache, blob);
    const waiting = () => new Readable({ read: () => resolve() });
    for (const _time of [1, 2]) cache.recordMiss(endless.digest, endless.info, waiting);
    await begun;
  }
  expect(fixture.lines).toEqual([]);
  expect(await fixture.files()).toHaveLength(1);
  await using cache = await fixture.open();
  expect(await blob.fetchChunk(cache)).toEqual(blob.bytes);
  expect(blob.reads).toBe(1);
});

test('An incomplete copy of a dead process is removed after an hour', async () => {
  await using fixture = await openFixture();
  await using _cache = await fixture.open();
  const left = join(fixture.folder, 'dead.part');
  await writeFile(left, 'half');
  const { mtime: now } = await stat(left);
  await fixture.clock.advance(3_600_000);
  expect(await fixture.files()).toEqual([left]);
  await utimes(left, now, new Date(now.getTime() - 60_000));
  await fixture.clock.advance(3_600_000);
  await expect.poll(fixture.files).toEqual([]);
});

test('Processes that share a folder share its copies, and keep them when they start', async () => {
  await using fixture = await openFixture();
  await using one = await fixture.open();
  const blob = new RemoteBlob(mebibyte);
  await untilCopied(one, blob);
  await using other = await fixture.open();
  expect(await blob.fetchChunk(one)).toEqual(blob.bytes);
  expect(await blob.fetchChunk(other)).toEqual(blob.bytes);
  expect(blob.reads).toBe(1);
  await one.remove(blob.digest);
  expect(await blob.fetchChunk(other)).toBeUndefined();
});

test('Processes that share a folder share one limit, also while they copy at the same time', async () => {
  const maxBytes = 4 * mebibyte;
  await using fixture = await openFixture(maxBytes);
  await using one = await fixture.open();
  await using other = await fixture.open();
  for (const _round of [1, 2, 3]) {
    const blobs = [new RemoteBlob(2 * mebibyte), new RemoteBlob(2 * mebibyte)];
    await Promise.all([untilCopied(one, blobs[0]), untilCopied(other, blobs[1])]);
    const sizes = await Promise.all((await fixture.files()).map(async (path) => (await stat(path)).size));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(maxBytes);
  }
});
