// Takes about 3 s
import { randomUUID } from 'node:crypto';
import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeStore } from '../../../test/suites/store-suite.ts';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../../log/log.ts';
import { openSharedSqliteStore, openSqliteStore } from './sqlite.ts';

describeStore('SQLite', async () => {
  const folder = await temporaryFolder();
  return {
    open: (collections) => openSqliteStore({ folder: folder.path, collections, log: silentLog() }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
});

describeStore('SQLite, shared with a thread', async () => {
  const folder = await temporaryFolder();
  return {
    open: async (collections) => {
      const closing = new AsyncDisposableStack();
      const owned = closing.use(await openSqliteStore({ folder: folder.path, collections, log: silentLog() }));
      const store = closing.use(await openSharedSqliteStore(owned.share(), { collections, log: silentLog() }));
      return Object.assign(store, { [Symbol.asyncDispose]: async () => await closing.disposeAsync() });
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
});

test('SQLite runs changes of one document one after another, so that no change runs twice', async () => {
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

test('SQLite: only the owner can read the files of the store, also if other users could read them before', async () => {
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

test('SQLite: threads that change one document at the same time lose no change', async () => {
  await using folder = await temporaryFolder();
  const things = { name: 'things', indexes: {} };
  const options = { collections: [things], log: silentLog() };
  await using owned = await openSqliteStore({ folder: folder.path, ...options });
  await using shared = await openSharedSqliteStore(owned.share(), options);
  await shared.insert(things, { id: 'one', count: 0 } as { id: string });
  const add = (thing: { id: string; count?: number }) => ({ ...thing, count: (thing.count ?? 0) + 1 });
  await Promise.all(Array.from({ length: 50 }, (_, i) => [owned, shared][i % 2]!.update(things, 'one', add)));
  expect(await owned.get(things, 'one')).toStrictEqual({ id: 'one', count: 50 });
});

test('SQLite: a store that is shared with a thread rejects every operation after its owner has closed the store', async () => {
  await using folder = await temporaryFolder();
  const things = { name: 'things', indexes: {} };
  const options = { collections: [things], log: silentLog() };
  const owned = await openSqliteStore({ folder: folder.path, ...options });
  const shared = await openSharedSqliteStore(owned.share(), options);
  await owned[Symbol.asyncDispose]();
  await expect.poll(async () => await shared.insert(things, { id: 'one' }).catch(codeOf)).toBe('unavailable');
  await shared[Symbol.asyncDispose]();
});

function codeOf(error: { code?: string }): string | undefined {
  return error.code;
}
