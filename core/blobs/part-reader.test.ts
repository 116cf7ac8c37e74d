import { randomBytes } from 'node:crypto';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Pace } from '../pace/pace.ts';
import { PartReader } from './part-reader.ts';

const partBytes = 1000;
const pace = new Pace(2);
const sent = Promise.resolve();

/** Which of the parts of a file were read ahead, where the page cache has only those that `isCached` names. */
async function readAhead(parts: number, isCached: (part: number) => boolean): Promise<number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-parts-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const bytes = randomBytes(parts * partBytes);
  await writeFile(join(folder, 'blob'), bytes);
  await using file = await open(join(folder, 'blob'));
  let [nowMs, diskReads] = [0, 0];
  const reader = new PartReader(file, {
    pace,
    nowMs: () => nowMs,
    diskReads: () => diskReads,
    readNow: (_fd, buffer, length, at) => {
      nowMs += isCached(at / partBytes) ? 0.1 : 5;
      return bytes.copy(buffer, 0, at, at + length);
    },
  });
  const ahead: number[] = [];
  const buffer = Buffer.alloc(partBytes);
  for (let part = 0; part < parts; part += 1) {
    if (reader.readsAhead) ahead.push(part);
    if (!isCached(part)) diskReads += 1;
    const at = part * partBytes;
    expect(await reader.read(buffer, { at, length: partBytes }, sent)).toBe(partBytes);
    expect(buffer.equals(bytes.subarray(at, at + partBytes))).toBe(true);
  }
  return ahead;
}

const from = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);

it('leaves the first part of a file to another thread, and what the page cache has to nobody', async () => {
  expect(await readAhead(20, () => true)).toEqual([0]);
});

it('leaves what is on a disk to another thread', async () => {
  expect(await readAhead(80, () => false)).toEqual(from(0, 80));
});

it('meets the disk once where the cache ends, and comes back where it goes on', async () => {
  expect(await readAhead(30, (part) => part !== 4)).toEqual([0, ...from(5, 8)]);
  // Eight are read ahead after the one that was slow, sixteen more since the eight came from the disk, and then no more.
  expect(await readAhead(60, (part) => part < 4 || part > 12)).toEqual([0, ...from(5, 24)]);
});

it('says what the system says of a file that cannot be read', async () => {
  const file = await open(tmpdir());
  const reader = new PartReader(file, { pace });
  const buffer = Buffer.alloc(partBytes);
  for (let part = 0; part < 2; part += 1) {
    await expect(reader.read(buffer, { at: 0, length: partBytes }, sent)).rejects.toMatchObject({
      code: 'unavailable',
    });
  }
  await file.close();
});

it('waits for the part before, and hears of its failure', async () => {
  const file = await open(process.execPath);
  const reader = new PartReader(file, { pace });
  const buffer = Buffer.alloc(partBytes);
  for (let part = 0; part < 3; part += 1) {
    const failed = Promise.reject(new Error('left'));
    await expect(reader.read(buffer, { at: 0, length: partBytes }, failed)).rejects.toThrow('left');
  }
  await file.close();
});
