import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { isInMemory } from './durable.ts';

const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '');
const isMounted = mounts.includes(' /dev/shm tmpfs ');

test.skipIf(!isMounted)('A folder in memory is known from one on a disk', async () => {
  expect(await isInMemory('/dev/shm')).toBe(true);
  expect(await isInMemory('/proc')).toBe(false);
});
