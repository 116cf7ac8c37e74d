import { createHash, randomBytes } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { bytesOf } from '../../test/kit/byte-source.ts';
import { temporaryFolder } from '../../test/suites/temporary-folder.ts';
import { ManualClock } from '../clock/manual-clock.ts';
import { HashThreads } from '../hash/hash-threads.ts';
import { silentLog } from '../log/log.ts';
import type { ByteTaker } from './blobs.ts';
import { openFileBlobs } from './filesystem.ts';
import { TakeBehind } from './take-behind.ts';

const kib = 1024;
const mib = 1024 * kib;
const threads = new HashThreads(new ManualClock());

afterAll(() => threads[Symbol.asyncDispose]());

/** A file, and what its taker is asked to take from it. */
async function openScene(takeFile: NonNullable<ByteTaker['takeFile']> = async () => {}) {
  const folder = await temporaryFolder();
  const file = await open(join(folder.path, 'file'), 'w+');
  const parts: [number, number][] = [];
  const taker: ByteTaker = {
    take: async () => expect.unreachable('It takes from the file'),
    takeFile: async (fd, part) => {
      expect(fd).toBe(file.fd);
      parts.push([part.start, part.end]);
      await takeFile(fd, part);
    },
  };
  return {
    behind: new TakeBehind(file, 0, taker),
    parts,
    [Symbol.asyncDispose]: async () => {
      await file.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

test('takes little by little at first, in larger parts later, and all at the end', async () => {
  await using scene = await openScene();
  for (const written of [100, 255, 256, 300, 600, 2_000, 9_000, 9_100].map((some) => some * kib)) {
    await scene.behind.follow([], written);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const begun = scene.parts.map((part) => part.map((at) => at / kib));
  expect(begun).toStrictEqual([
    [0, 256],
    [256, 600],
    [600, 2_000],
    [2_000, 6_096],
    [6_096, 9_000],
  ]);
  await scene.behind.finish();
  expect(scene.parts.at(-1)).toStrictEqual([9_000 * kib, 9_100 * kib]);
});

test('frees chunks at once, and lets the writer go ahead, but not too far', async () => {
  const slow = Promise.withResolvers<void>();
  await using scene = await openScene(async () => await slow.promise);
  const chunk = new Uint8Array(mib);
  await scene.behind.follow([chunk], mib);
  expect(chunk.byteLength).toBe(0);
  await scene.behind.follow([], 64 * mib);
  const state = { isAhead: false };
  const tooFar = scene.behind.follow([], 65 * mib).then(() => (state.isAhead = true));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(state.isAhead).toBe(false);
  slow.resolve();
  await tooFar;
  await scene.behind.finish();
  expect(scene.parts.at(-1)?.[1]).toBe(65 * mib);
});

test('fails with what the taker fails with, and takes no more', async () => {
  const failure = new Error('Nobody takes it');
  await using scene = await openScene(async () => await Promise.reject(failure));
  await scene.behind.follow([], mib);
  await expect(scene.behind.finish()).rejects.toBe(failure);
  await expect(scene.behind.follow([], 2 * mib)).rejects.toBe(failure);
  expect(scene.parts).toHaveLength(1);
});

test('a file is hashed as it is written, also when an upload goes on', async () => {
  await using folder = await temporaryFolder();
  await using blobs = await openFileBlobs({ folder: folder.path, log: silentLog() });
  await blobs.createUpload('one');
  const parts = [3 * mib + 1, 10, 700 * kib].map((size) => randomBytes(size));
  const taker = threads.begin('sha256');
  let offset = 0;
  for (const part of parts) {
    const chunks = Array.from(
      { length: Math.ceil(part.length / 65_536) },
      (_, i) => new Uint8Array(part.subarray(i * 65_536, (i + 1) * 65_536)),
    );
    offset = await blobs.appendUpload('one', offset, bytesOf(...chunks), { taker });
    expect(chunks.every(({ byteLength }) => byteLength === 0)).toBe(true);
  }
  const whole = Buffer.concat(parts);
  expect((await readFile(join(folder.path, 'uploads/one'))).equals(whole)).toBe(true);
  expect(await taker.digest()).toBe(createHash('sha256').update(whole).digest('hex'));
});

test('an append fails when what is written cannot be taken, and the upload goes on', async () => {
  await using folder = await temporaryFolder();
  await using blobs = await openFileBlobs({ folder: folder.path, log: silentLog() });
  await blobs.createUpload('one');
  const failure = new Error('Nobody takes it');
  const taker = { take: async () => {}, takeFile: async () => await Promise.reject(failure) };
  await expect(blobs.appendUpload('one', 0, bytesOf(randomBytes(mib)), { taker })).rejects.toBe(failure);
  const { sizeBytes = -1 } = (await blobs.statUpload('one')) ?? {};
  expect(await blobs.appendUpload('one', sizeBytes, bytesOf(Buffer.from('x')))).toBe(sizeBytes + 1);
});
