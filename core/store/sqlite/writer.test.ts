import { join } from 'node:path';
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
  const writes: [Write, boolean][] = [
    [{ kind: 'replace', ...one, version: 1, document }, false],
    [{ kind: 'remove', ...one, version: 1 }, false],
    [{ kind: 'insert', ...one, document }, true],
    [{ kind: 'insert', ...one, document }, false],
    [{ kind: 'replace', ...one, version: 2, document }, false],
    [{ kind: 'replace', ...one, version: 1, document }, true],
    [{ kind: 'replace', ...one, version: 1, document }, false],
    [{ kind: 'remove', ...one, version: 1 }, false],
    [{ kind: 'remove', ...one, version: 2 }, true],
    [{ kind: 'remove', ...one, version: 2 }, false],
  ];
  // All at once, so that they are in one transaction, in this order.
  const happened = await Promise.all(writes.map(([write]) => writer.write(write)));
  expect(happened).toStrictEqual(writes.map(([, expected]) => expected));
});
