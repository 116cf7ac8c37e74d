import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { isInMemory } from './durable.ts';

const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '');
const isMounted = mounts.includes(' /dev/shm tmpfs ');

test.skipIf(!isMounted)('Distinguishes a folder in memory from a folder on a disk', async () => {
  expect(await isInMemory('/dev/shm')).toBe(true);
  expect(await isInMemory('/proc')).toBe(false);
});
