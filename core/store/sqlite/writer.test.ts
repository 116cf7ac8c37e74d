import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../../log/log.ts';
import { indexSql, tableSql } from './query.ts';
import { openSqliteWriter } from './writer.ts';
import type { Write } from './writer.ts';

const things = { name: 'things', indexes: {} };
const document = '{}';

test('a write happens only if the document has the expected version', async () => {
  await using folder = await temporaryFolder();
  const data = {
    file: join(folder.path, 'test.db'),
    tables: [tableSql(things)],
    indexes: new Map([[things.name, indexSql(things)]]),
  };
  await using writer = await openSqliteWriter(data, silentLog());
  const one = { table: things.name, id: 'one' };
  using reader = new DatabaseSync(data.file, { readOnly: true });
  const insert = async () => {
    expect(await writer.write({ kind: 'insert', ...one, document })).toBe(true);
    return (reader.prepare('SELECT version FROM things').get() as { version: number }).version;
  };
  expect(await writer.write({ kind: 'replace', ...one, version: 1, document })).toBe(false);
  expect(await writer.write({ kind: 'remove', ...one, version: 1 })).toBe(false);
  const version = await insert();
  const writes: [Write, boolean][] = [
    [{ kind: 'insert', ...one, document }, false],
    [{ kind: 'replace', ...one, version: version + 1, document }, false],
    [{ kind: 'replace', ...one, version, document }, true],
    [{ kind: 'replace', ...one, version, document }, false],
    [{ kind: 'remove', ...one, version }, false],
    [{ kind: 'remove', ...one, version: version + 1 }, true],
    [{ kind: 'remove', ...one, version: version + 1 }, false],
  ];
  // All at once, so that they are in one transaction, in this order.
  const happened = await Promise.all(writes.map(([write]) => writer.write(write)));
  expect(happened).toStrictEqual(writes.map(([, expected]) => expected));
  // A change of the deleted document must not apply to a later one with its ID.
  expect(await insert()).not.toBe(version);
});
