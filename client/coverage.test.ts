/** Every endpoint has a method of the client. `methods.test.ts` checks the requests of the methods against the real API. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { endpoints } from './contract.ts';

const sources = globSync('*.ts', { cwd: import.meta.dirname })
  .filter((file) => !/^contract|\.test\.ts$/.test(file))
  .map((file) => readFileSync(join(import.meta.dirname, file), 'utf8'))
  .join('\n');

test('every endpoint has a method', () => {
  expect(Object.keys(endpoints).filter((name) => !sources.includes(`'${name}'`))).toEqual([]);
});
