// Takes about 4 s
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runPlainBerth } from '../test/kit/platform/berth-command.ts';
import { freePort } from '../test/kit/machine/free-port.ts';

test.each([
  { part: 'store', store: 'mongodb', args: ['--roles', 'registry'], message: 'The store cannot be used' },
  { part: 'blobs', store: 'sqlite', args: [], message: 'Blobs cannot be used' },
])('a process whose MongoDB for the $part is unavailable prints one sentence, and what to check', async (setup) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-'));
  const environment = {
    PATH: process.env['PATH'] ?? '',
    BERTH_DATA_FOLDER: folder,
    BERTH_STORE: setup.store,
    BERTH_BLOBS: 'gridfs',
    // Otherwise there would be a warning that no API is notified of pushes.
    BERTH_PREFETCH: 'no',
    BERTH_MONGODB_URL: `mongodb://berth:s3cret@127.0.0.1:${await freePort()}`,
  };
  const { code, stderr } = await runPlainBerth({ environment }, 'serve', ...setup.args);
  await rm(folder, { recursive: true });
  expect(code).toBe(1);
  const [problem, advice, ...rest] = stderr.split('\n');
  expect(problem).toMatch(new RegExp(`^${setup.message}: .*ECONNREFUSED`));
  expect([advice, ...rest]).toEqual(['Is MongoDB running, and is BERTH_MONGODB_URL right?', '']);
});
