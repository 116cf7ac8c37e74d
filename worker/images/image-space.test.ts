import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { bytesOnDisk, disksOf, findLack } from './image-space.ts';

const gib = 1024 ** 3;
const disk = (freeBytes: number, totalBytes: number, folder = '/one') => ({ folder, freeBytes, totalBytes });

test('an image needs several times its size: compressed and unpacked', () => {
  expect(bytesOnDisk(gib)).toBe(4 * gib);
});

test('a tenth of a small disk stays free', () => {
  const small = disk(5 * gib, 20 * gib);
  expect(findLack([small], { neededBytes: 3 * gib })).toBeUndefined();
  const lack = { folder: '/one', freeBytes: 5 * gib, reserveBytes: 2 * gib, neededBytes: 3 * gib + 1 };
  expect(findLack([small], { neededBytes: 3 * gib + 1 })).toEqual(lack);
});

test('on a large disk ten gibibytes stay free, and no more', () => {
  const large = disk(14 * gib, 2_000 * gib);
  expect(findLack([large], { neededBytes: 4 * gib })).toBeUndefined();
  expect(findLack([large], { neededBytes: 4 * gib + 1 })?.reserveBytes).toBe(10 * gib);
});

test('a configured reserve replaces the default, even if it is 0', () => {
  const small = disk(5 * gib, 20 * gib);
  expect(findLack([small], { neededBytes: 5 * gib, reserveBytes: 0 })).toBeUndefined();
  expect(findLack([small], { neededBytes: 5 * gib + 1, reserveBytes: 0 })?.reserveBytes).toBe(0);
  expect(findLack([small], { neededBytes: gib, reserveBytes: 4 * gib })).toBeUndefined();
  expect(findLack([small], { neededBytes: gib, reserveBytes: 4 * gib + 1 })?.reserveBytes).toBe(4 * gib + 1);
});

test('the fuller of two disks decides, and without a known disk there is enough space', () => {
  const disks = [disk(15 * gib, 20 * gib), disk(gib, 20 * gib, '/two')];
  expect(findLack(disks, { neededBytes: 1 })?.folder).toBe('/two');
  expect(findLack([], { neededBytes: Number.MAX_SAFE_INTEGER })).toBeUndefined();
});

test('visible disks are read, invisible ones are skipped', async () => {
  const [seen, ...others] = await disksOf(['/not/on/this/machine', tmpdir()], '/');
  expect(others).toEqual([]);
  expect(seen?.folder).toBe(tmpdir());
  expect(seen?.freeBytes).toBeGreaterThan(0);
  expect(seen?.totalBytes).toBeGreaterThanOrEqual(seen?.freeBytes ?? Infinity);
});

test('without a visible disk, the disk of the volume counts, if the engine has image folders', async () => {
  expect(await disksOf(['/not/on/this/machine'], tmpdir())).toMatchObject([{ folder: tmpdir() }]);
  expect(await disksOf(['/not/on/this/machine'], '/nor/this')).toEqual([]);
  expect(await disksOf([], tmpdir())).toEqual([]);
});
