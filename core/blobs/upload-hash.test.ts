import { createHash, randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { hashing } from '../../test/kit/registry/hashing.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import type { Hash } from '../hash/hash.ts';
import { HashThreads } from '../hash/hash-threads.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { UploadHash } from './upload-hash.ts';

const mib = 1024 * 1024;
const { signal } = new AbortController();

/** Threads whose only hash calls this function to read a file, and records the parts. */
function threadsReading(updateFromFile: () => Promise<void>) {
  const threads = new HashThreads(new ManualClock());
  const parts: [number, number][] = [];
  const hash: Hash = {
    update: async () => expect.unreachable('It reads the file'),
    updateFromFile: async (_fd, { start, end }) => {
      parts.push([start, end]);
      await updateFromFile();
    },
    digest: async () => 'abc',
    [Symbol.dispose]: () => {},
  };
  vi.spyOn(threads, 'begin').mockReturnValue(hash);
  return { threads, parts };
}

const nextTurn = async () => await new Promise((resolve) => setImmediate(resolve));

test('follows a file in parts, and hashes it to its end when the writer has finished', async () => {
  const { threads, parts } = threadsReading(async () => {});
  const hash = new UploadHash(threads, 'sha256');
  for (const written of [0.1, 0.2, 0.5, 0.6, 9].map((some) => some * mib)) {
    await hash.follow(3, written);
    await nextTurn();
  }
  await hash.finish(3);
  expect(parts).toStrictEqual([
    [0, 0.5 * mib],
    [0.5 * mib, 4.5 * mib],
    [4.5 * mib, 8.5 * mib],
    [8.5 * mib, 9 * mib],
  ]);
  expect(await hash.digest(9 * mib, () => expect.unreachable('All is hashed'), signal)).toBe('sha256:abc');
});

test('lets the writer run ahead, up to a limit', async () => {
  const slow = Promise.withResolvers<void>();
  const { threads, parts } = threadsReading(async () => await slow.promise);
  const hash = new UploadHash(threads, 'sha256');
  await hash.follow(3, mib);
  await hash.follow(3, 64 * mib);
  const state = { isAhead: false };
  const tooFar = hash.follow(3, 65 * mib).then(() => (state.isAhead = true));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(state.isAhead).toBe(false);
  slow.resolve();
  await tooFar;
  await hash.finish(3);
  expect(parts.at(-1)?.[1]).toBe(65 * mib);
});

test('a hash that cannot follow a file fails no append, and `digest` reads all bytes', async () => {
  await using folder = await temporaryFolder();
  await using file = await open(join(folder.path, 'file'), 'w+');
  const bytes = randomBytes(2 * mib);
  await file.writeFile(bytes.subarray(0, mib));
  using hash = new UploadHash(hashing, 'sha256');
  // More than the file contains.
  await hash.follow(file.fd, 2 * mib);
  await hash.finish(file.fd);
  expect([hash.hashedBytes, hash.canFollow(0)]).toStrictEqual([0, false]);
  async function* read(start: number) {
    yield bytes.subarray(start);
  }
  const expected = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  expect(await hash.digest(bytes.length, read, signal)).toBe(expected);
});
