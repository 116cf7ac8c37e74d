import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { collectLog } from '../../../test/kit/collect-log.ts';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../../log/log.ts';
import { openSqliteStore } from './sqlite.ts';
import type { Collection, Store } from '../store.ts';

interface Thing {
  readonly id: string;
  readonly rank?: number;
}

const things: Collection<Thing, 'byRank'> = { name: 'things', indexes: { byRank: ['rank'] } };

async function open(folder: string, log = silentLog()): Promise<Store> {
  return await openSqliteStore({ folder, collections: [things], log });
}

test('data can be opened once, also within a process, and again after it was closed', async () => {
  await using folder = await temporaryFolder();
  {
    await using store = await open(folder.path);
    await store.ping();
    await expect(open(folder.path)).rejects.toMatchObject({ name: 'StoreError', code: 'locked' });
    await expect(open(folder.path)).rejects.toThrow(`process ${process.pid}`);
    await store.insert(things, { id: 'one' });
  }
  await using store = await open(folder.path);
  expect(await store.get(things, 'one')).toStrictEqual({ id: 'one' });
});

test('when the writer thread dies, waiting and later operations are rejected', async () => {
  await using folder = await temporaryFolder();
  const { log, lines } = collectLog();
  const started = once(process, 'worker');
  await using store = await open(folder.path, log);
  const [thread] = (await started) as [Worker];
  await store.insert(things, { id: 'one' });
  await store.insert(things, { id: 'two' });
  const writes = Promise.allSettled([
    ...Array.from({ length: 10 }, (_, rank) => store.insert(things, { id: `${rank}`, rank })),
    store.update(things, 'one', (thing) => ({ ...thing, rank: 1 })),
    store.delete(things, 'two'),
  ]);
  await thread.terminate();
  for (const write of await writes) {
    expect(write).toMatchObject({ status: 'rejected', reason: { name: 'StoreError', code: 'unavailable' } });
  }
  const late = store.insert(things, { id: 'late' });
  await expect(late).rejects.toMatchObject({ name: 'StoreError', code: 'unavailable' });
  await expect(store.ping()).rejects.toMatchObject({ code: 'unavailable' });
  expect(JSON.stringify(lines)).toContain("The store's writer thread has crashed");
  await store[Symbol.asyncDispose]();
  await using again = await open(folder.path);
  await again.insert(things, { id: 'late' });
});

test('a folder or file that is not a database is rejected, and stays unlocked', async () => {
  await using folder = await temporaryFolder();
  await expect(open('/dev/null/data')).rejects.toMatchObject({ name: 'StoreError', code: 'unavailable' });
  await writeFile(
    join(folder.path, 'berth.db'),
    'This is not a database, but it is long enough to look at. '.repeat(100),
  );
  for (let time = 0; time < 2; time += 1) {
    await expect(open(folder.path)).rejects.toMatchObject({ name: 'StoreError', code: 'unavailable' });
    await expect(open(folder.path)).rejects.toThrow('file is not a database');
  }
});

test('data of a newer version is rejected', async () => {
  await using folder = await temporaryFolder();
  const store = await open(folder.path);
  await store[Symbol.asyncDispose]();
  const database = new DatabaseSync(join(folder.path, 'berth.db'));
  database.exec('PRAGMA user_version = 2');
  database.close();
  await expect(open(folder.path)).rejects.toThrow('The data was written by a newer version');
});

test('indexes that are no longer declared, or declared differently, are dropped', async () => {
  await using folder = await temporaryFolder();
  const indexes = { byRank: ['id', 'rank'], byOther: ['other'] };
  const before = { folder: folder.path, collections: [{ name: 'things', indexes }], log: silentLog() };
  const older = await openSqliteStore(before);
  await older[Symbol.asyncDispose]();
  const newer = await open(folder.path);
  await newer[Symbol.asyncDispose]();

  const database = new DatabaseSync(join(folder.path, 'berth.db'));
  const found = database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL").all();
  expect(found.map(({ name }) => name)).toStrictEqual(['things.byRank']);
  expect(found[0]?.['sql']).not.toMatch(/\(id,/);
  database.close();
});

test('a collection that was not declared is rejected', async () => {
  await using folder = await temporaryFolder();
  await using store = await open(folder.path);
  await expect(store.get({ name: 'others', indexes: {} }, 'one')).rejects.toThrow('"others" was not declared');
});
