import { expect, test } from 'vitest';
import { systemClock } from '../clock/system-clock.ts';
import { HashThreads } from '../hash/hash-threads.ts';
import type { UploadHash } from './upload-hash.ts';
import { UploadHashes } from './upload-hashes.ts';

test('closing discards all hashes, and those in use as soon as their use ends', async () => {
  await using threads = new HashThreads(systemClock);
  const hashes = new UploadHashes(threads, systemClock);
  const used: UploadHash[] = [];
  const hashPart = async (key: string) =>
    await hashes.use(key, 'sha256', async (hash) => {
      used.push(hash);
      await hash.update(new Uint8Array(new SharedArrayBuffer(300_000)));
      expect(hash.hashedBytes).toBe(300_000);
    });
  await hashPart('kept');
  const inUse = hashPart('in use');
  hashes[Symbol.dispose]();
  await inUse;
  await hashPart('begun later');
  expect(used.map(({ hashedBytes }) => hashedBytes)).toStrictEqual([0, 0, 0]);
});
