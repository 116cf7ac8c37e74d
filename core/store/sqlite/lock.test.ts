import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { lockFolder } from './lock.ts';
import { StoreError } from '../store.ts';

test('a folder can be locked once, also within a process, and the error names the holder', async () => {
  await using folder = await temporaryFolder();
  const lock = lockFolder(folder.path);
  const error = thrownBy(() => lockFolder(folder.path));
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ code: 'locked' });
  expect(error.message).toMatch(
    new RegExp(`in use by process ${process.pid} on .+, since 20.+Z: stop that process, or use another data folder$`),
  );
  expect(thrownBy(() => lockFolder(folder.path))).toMatchObject({ code: 'locked' });

  lock[Symbol.dispose]();
  lock[Symbol.dispose]();
  using again = lockFolder(folder.path);
  lock[Symbol.dispose]();
  expect(thrownBy(() => lockFolder(folder.path))).toMatchObject({ code: 'locked' });
  expect(again).toBeDefined();
});

test('the name of a dead holder neither locks the folder nor appears in the error', async () => {
  await using folder = await temporaryFolder();
  const holderFile = join(folder.path, 'berth.holder.json');
  using lock = lockFolder(folder.path);
  expect(lock).toBeDefined();
  // No process has this ID: it is above the largest that Linux assigns.
  await writeFile(
    holderFile,
    JSON.stringify({ pid: 2 ** 22 + 1, host: (await import('node:os')).hostname(), since: '' }),
  );
  expect(thrownBy(() => lockFolder(folder.path)).message).toContain('in use by another process:');
  await writeFile(holderFile, 'not JSON');
  expect(thrownBy(() => lockFolder(folder.path)).message).toContain('in use by another process:');
});

function thrownBy(action: () => unknown): Error {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error('Nothing was thrown');
}
