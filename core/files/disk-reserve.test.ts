import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { canMount, SmallDisk, whyNoDisk } from '../../test/kit/machine/small-disk.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { DiskReserve, ReserveError } from './disk-reserve.ts';

const mebibyte = 1024 * 1024;

test('without a reserve everything may be written that fits', async () => {
  const reserve = new DiskReserve({ folder: tmpdir(), reserveBytes: 0, clock: new ManualClock() });
  await reserve.require();
  await expect(reserve.require(Number.MAX_SAFE_INTEGER)).rejects.toThrow(ReserveError);
});

test.runIf(canMount)(`what is written in between counts, and the disk is measured again soon${whyNoDisk}`, async () => {
  await using disk = await SmallDisk.mount(16);
  const clock = new ManualClock();
  const reserve = new DiskReserve({ folder: disk.path, reserveBytes: 4 * mebibyte, clock });
  await reserve.require(7 * mebibyte);
  // Of what is allowed nothing is written yet: measured anew, the disk has room for this.
  await reserve.require(7 * mebibyte);
  await writeFile(join(disk.path, 'written'), Buffer.alloc(11 * mebibyte));
  await expect(reserve.require(6 * mebibyte)).rejects.toThrow('The disk is full: 5 MiB are free, and 4 MiB are kept');
  await reserve.require(mebibyte);
  await disk.fillUpTo(3);
  await reserve.require();
  await clock.advance(100);
  await expect(reserve.require()).rejects.toThrow('3 MiB are free');
  await disk.heal();
  await reserve.require();
});
