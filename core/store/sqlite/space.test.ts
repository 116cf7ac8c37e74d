import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../../log/log.ts';
import { openSqliteStore } from './sqlite.ts';

const things = { name: 'things', indexes: {} };
const mib = 1024 * 1024;

test('SQLite returns the space of deleted documents to the disk while it runs', async () => {
  await using folder = await temporaryFolder();
  await using store = await openSqliteStore({ folder: folder.path, collections: [things], log: silentLog() });
  const sizeOf = async (file: string) => (await stat(join(folder.path, file))).size;
  const ids = Array.from({ length: 400 }, (_, i) => `thing-${i}`);
  const content = 'x'.repeat(80_000);
  await Promise.all(ids.map(async (id) => await store.insert(things, { id, content } as { id: string })));
  expect(await sizeOf('berth.db')).toBeGreaterThan(30 * mib);
  while (ids.length > 0) await Promise.all(ids.splice(0, 50).map(async (id) => await store.delete(things, id)));
  // Later writes, which always occur, return the remaining free pages.
  for (let write = 0; write < 2_000 && (await sizeOf('berth.db')) > 6 * mib; write += 1) {
    await store.insert(things, { id: `later-${write}` });
  }
  expect(await sizeOf('berth.db')).toBeLessThan(6 * mib);
  expect(await sizeOf('berth.db-wal')).toBeLessThanOrEqual(64 * mib);
});
