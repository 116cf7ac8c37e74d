// Takes about 3 s
import { randomUUID } from 'node:crypto';
import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeStore } from '../../test/suites/store-suite.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../log/log.ts';
import { openSqliteStore } from './sqlite.ts';

describeStore('SQLite', async () => {
  const folder = await temporaryFolder();
  return {
    open: (collections) => openSqliteStore({ folder: folder.path, collections, log: silentLog() }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
});

test('SQLite runs changes of one document in turn: none has to run twice', async () => {
  await using folder = await temporaryFolder();
  const things = { name: 'things', indexes: {} };
  await using store = await openSqliteStore({ folder: folder.path, collections: [things], log: silentLog() });
  await store.insert(things, { id: 'one' });
  let runs = 0;
  const change = (thing: { id: string }) => {
    runs += 1;
    return { ...thing };
  };
  await Promise.all(Array.from({ length: 50 }, () => store.update(things, 'one', change)));
  expect(runs).toBe(50);
});

test('SQLite: only the owner can read any file of the store, also of one that others could read before', async () => {
  await using folder = await temporaryFolder();
  const things = { name: 'things', indexes: {} };
  const modes = async () => {
    await using store = await openSqliteStore({ folder: folder.path, collections: [things], log: silentLog() });
    await store.insert(things, { id: randomUUID() });
    const names = await readdir(folder.path);
    expect(names).toEqual(expect.arrayContaining(['berth.db', 'berth.db-wal', 'berth.db-shm', 'berth.lock']));
    return await Promise.all(
      names.map(async (name) => ((await stat(join(folder.path, name))).mode & 0o777).toString(8)),
    );
  };
  expect(new Set(await modes())).toEqual(new Set(['600']));
  for (const name of await readdir(folder.path)) await chmod(join(folder.path, name), 0o644);
  expect(new Set(await modes())).toEqual(new Set(['600']));
});
