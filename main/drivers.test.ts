// Takes about 4 s
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runPlainBerth } from '../test/kit/platform/berth-command.ts';
import { freePort } from '../test/kit/machine/free-port.ts';

test('a process whose MongoDB is unavailable prints one sentence, and what to check', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-'));
  const environment = {
    PATH: process.env['PATH'] ?? '',
    BERTH_DATA_FOLDER: folder,
    BERTH_STORE: 'mongodb',
    BERTH_BLOBS: 'gridfs',
    // Otherwise there would be a warning that no API is notified of pushes.
    BERTH_FETCH_AHEAD: 'no',
    BERTH_MONGODB_URL: `mongodb://berth:s3cret@127.0.0.1:${await freePort()}`,
  };
  const { code, stderr } = await runPlainBerth({ environment }, 'serve', '--roles', 'registry');
  await rm(folder, { recursive: true });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^The store cannot be used: [^\n]*ECONNREFUSED[^\n]*\nIs MongoDB running, and is BERTH_MONGODB_URL right\?\n$/,
  );
});
