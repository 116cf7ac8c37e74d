import { createHash, randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { HashThreads } from './hash-threads.ts';

const clock = new ManualClock();
const threads = new HashThreads(clock);

afterAll(() => threads[Symbol.asyncDispose]());

const mib = 1024 * 1024;
const hexOf = (algorithm: string, bytes: Uint8Array) => createHash(algorithm).update(bytes).digest('hex');

test.each([0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 3 * mib + 17])(
  'hashes %i bytes in parts of any size',
  async (size) => {
    const bytes = randomBytes(size);
    for (const [algorithm, step] of [
      ['sha256', 65_536],
      ['sha512', 300_001],
      ['sha256', 3 * mib],
    ] as const) {
      const hash = threads.begin(algorithm);
      for (let at = 0; at < size; at += step) {
        // Some parts have their own buffer, others share one.
        const part = bytes.subarray(at, at + step);
        await hash.update(at % 2 === 0 ? new Uint8Array(part) : part);
      }
      expect(await hash.digest()).toBe(hexOf(algorithm, bytes));
    }
  },
);

test('hashes many contents at a time without mixing them up', async () => {
  const contents = Array.from({ length: 20 }, () => randomBytes(mib + 5));
  const digests = await Promise.all(
    contents.map(async (bytes) => {
      const hash = threads.begin('sha256');
      for (let at = 0; at < bytes.length; at += 100_000) {
        await hash.update(bytes.subarray(at, at + 100_000));
      }
      return await hash.digest();
    }),
  );
  expect(digests).toStrictEqual(contents.map((bytes) => hexOf('sha256', bytes)));
});

/** A file with these bytes, open until disposed. */
async function fileOf(bytes: Uint8Array) {
  const folder = await temporaryFolder();
  const file = await open(join(folder.path, 'file'), 'w+');
  await file.writeFile(bytes);
  return {
    fd: file.fd,
    [Symbol.asyncDispose]: async () => {
      await file.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

test('hashes parts of an open file, with and without other bytes between them', async () => {
  const bytes = randomBytes(2 * mib + 3);
  await using file = await fileOf(bytes);
  const hash = threads.begin('sha256');
  await hash.update(Buffer.from('before'));
  await hash.updateFromFile(file.fd, { start: 0, end: 700_000 });
  await hash.update(bytes.subarray(700_000, 700_007));
  await hash.updateFromFile(file.fd, { start: 700_007, end: 700_007 });
  await hash.updateFromFile(file.fd, { start: 700_007, end: bytes.length });
  expect(await hash.digest()).toBe(hexOf('sha256', Buffer.concat([Buffer.from('before'), bytes])));
});

test('hashes bytes in shared memory, with other bytes between them', async () => {
  const bytes = randomBytes(2 * mib + 3);
  const memory = new Uint8Array(new SharedArrayBuffer(mib));
  const hash = threads.begin('sha256');
  for (let at = 0; at < bytes.length; at += memory.length) {
    const part = bytes.subarray(at, at + memory.length);
    memory.set(part);
    await hash.update(memory.subarray(0, part.length));
    memory.fill(0);
    await hash.update(Buffer.from('between'));
  }
  const parts = [bytes.subarray(0, mib), bytes.subarray(mib, 2 * mib), bytes.subarray(2 * mib)];
  const whole = Buffer.concat(parts.flatMap((part) => [part, Buffer.from('between')]));
  expect(await hash.digest()).toBe(hexOf('sha256', whole));
});

test('a hash whose file is too short or closed fails, and other hashes do not', async () => {
  const bytes = randomBytes(mib);
  await using file = await fileOf(bytes);
  const kept = threads.begin('sha256');
  await kept.updateFromFile(file.fd, { start: 0, end: 100 });
  using short = threads.begin('sha256');
  await expect(short.updateFromFile(file.fd, { start: 0, end: mib + 1 })).rejects.toThrow(`ends at ${mib}`);
  await expect(short.digest()).rejects.toThrow('Cannot hash');
  using closed = threads.begin('sha256');
  await expect(closed.updateFromFile(1_000_000, { start: 0, end: 1 })).rejects.toThrow('EBADF');
  await kept.updateFromFile(file.fd, { start: 100, end: mib });
  expect(await kept.digest()).toBe(hexOf('sha256', bytes));
});

test('disposing one hash does not affect the others', async () => {
  const given = threads.begin('sha256');
  const kept = threads.begin('sha256');
  await given.update(randomBytes(mib));
  const full = given.update(randomBytes(8 * mib));
  given[Symbol.dispose]();
  await expect(full).rejects.toThrow('disposed');
  await expect(given.digest()).rejects.toThrow('disposed');
  const bytes = randomBytes(2 * mib);
  await kept.update(Buffer.from(bytes));
  expect(await kept.digest()).toBe(hexOf('sha256', bytes));
});

test('unused threads end, and new ones start when they are needed', async () => {
  const bytes = randomBytes(mib);
  const hashOnce = async () => {
    const hash = threads.begin('sha256');
    await hash.update(Buffer.from(bytes));
    return await hash.digest();
  };
  expect(await hashOnce()).toBe(hexOf('sha256', bytes));
  expect(threads.count).toBeGreaterThan(0);
  const held = threads.begin('sha256');
  const idle = async () => {
    await clock.advance(30_000);
    return threads.count;
  };
  // The thread that has a hash stays.
  await expect.poll(idle).toBe(1);
  await held.update(Buffer.from(bytes));
  expect(await held.digest()).toBe(hexOf('sha256', bytes));
  await expect.poll(idle).toBe(0);
  expect(await hashOnce()).toBe(hexOf('sha256', bytes));
});

test('a hash that begins while an idle thread ends does not end with it', async () => {
  const bytes = randomBytes(mib);
  const other = new HashThreads(clock);
  for (let round = 0; round < 5; round += 1) {
    const hash = other.begin('sha256');
    await hash.update(Buffer.from(bytes));
    expect(await hash.digest()).toBe(hexOf('sha256', bytes));
    for (let looks = 0; looks < 2; looks += 1) await clock.advance(30_000);
  }
  await other[Symbol.asyncDispose]();
});

test('unfinished hashes fail when the threads are closed', async () => {
  const closed = new HashThreads(clock);
  const hash = closed.begin('sha256');
  await hash.update(randomBytes(mib));
  const digest = hash.digest();
  await closed[Symbol.asyncDispose]();
  // The digest may have arrived just before.
  const outcome = await digest.catch((error: unknown) => error);
  if (typeof outcome !== 'string') expect(outcome).toMatchObject({ message: 'The hash thread has ended' });
  await expect(closed.begin('sha256').update(randomBytes(mib))).resolves.toBeUndefined();
  await closed[Symbol.asyncDispose]();
});
