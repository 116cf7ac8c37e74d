import { expect, test } from 'vitest';
import { describeStore } from '../../test/suites/store-suite.ts';
import { temporaryFolder } from '../../test/suites/temporary-folder.ts';
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
