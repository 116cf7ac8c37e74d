import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { canMount, SmallDisk, whyNoDisk } from '../../test/kit/machine/small-disk.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { DiskReserve, ReserveError } from './disk-reserve.ts';

const mebibyte = 1024 * 1024;

test('without a reserve, everything that fits may be written', async () => {
  const reserve = new DiskReserve({ folder: tmpdir(), reserveBytes: 0, clock: new ManualClock() });
  await reserve.require();
  await expect(reserve.require(Number.MAX_SAFE_INTEGER)).rejects.toThrow(ReserveError);
});

test.runIf(canMount)(
  `writes between two measurements count, and the disk is soon measured again${whyNoDisk}`,
  async () => {
    await using disk = await SmallDisk.mount(16);
    const clock = new ManualClock();
    const reserve = new DiskReserve({ folder: disk.path, reserveBytes: 4 * mebibyte, clock });
    await reserve.require(7 * mebibyte);
    // Nothing has been written yet: a new measurement finds enough space.
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
  },
);
