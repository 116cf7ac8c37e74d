import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { openDatabase } from './database.mjs';

test('a database is opened only if it is written through a synced log', async () => {
  await using folder = await temporaryFolder();
  const database = openDatabase(join(folder.path, 'test.db'));
  expect(database.prepare('PRAGMA journal_mode').get()).toMatchObject({ journal_mode: 'wal' });
  expect(database.prepare('PRAGMA synchronous').get()).toMatchObject({ synchronous: 2 });
  database.close();
  // A database in memory has no write-ahead log.
  expect(() => openDatabase(':memory:')).toThrow('SQLite cannot write durably here (journal memory, synchronous 2)');
});
