import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { systemClock } from '../../clock/system-clock.ts';
import { CopiesFolder } from './copies-folder.ts';

test('A copy is listed from the allocation of its space on, also while it is completed', async () => {
  await using folder = await temporaryFolder();
  const copies = await CopiesFolder.open(folder.path, systemClock);
  const bytes = Buffer.alloc(1_000);
  const missing: string[] = [];
  for (let i = 0; i < 100; i += 1) {
    const digest = `sha256:${i}`;
    const allocated = Promise.withResolvers<void>();
    const freeSpace = async () => {
      allocated.resolve();
      return true;
    };
    const blob = { generation: '1', sizeBytes: bytes.length };
    const { signal } = new AbortController();
    const made = copies.make({ digest, blob, read: () => Readable.from([bytes]), freeSpace, signal }).then(() => true);
    await allocated.promise;
    do {
      if ((await copies.list()).length !== 1) missing.push(digest);
    } while (!(await Promise.race([made, Promise.resolve(false)])));
    await copies.removeAll(digest);
  }
  expect(missing).toEqual([]);
});
