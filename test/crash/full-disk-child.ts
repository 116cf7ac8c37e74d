/**
 * Fills a store and blobs up to the file size limit of this process, then lifts the limit, and prints its results as JSON. The
 * test sets a soft limit only, so that the process may lift it.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { openFileBlobs } from '../../core/blobs/filesystem/filesystem.ts';
import { silentLog } from '../../core/log/log.ts';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import { pairs } from './pairs.ts';
import { bytesOf } from '../kit/registry/byte-source.ts';
import { hashing } from '../kit/registry/hashing.ts';

const [folder = ''] = process.argv.slice(2);
const log = silentLog();
await using store = await openSqliteStore({ folder: join(folder, 'store'), collections: [pairs], log });
await using blobs = await openFileBlobs({ hashing, folder: join(folder, 'blobs'), log });

/** In total four times the limit. */
const groups = 40;
const groupSize = 10;
const filling = 'x'.repeat(20_000);

const inserts: PromiseSettledResult<void>[] = [];
for (let group = 0; group < groups; group += 1) {
  const numbers = Array.from({ length: groupSize }, (_, i) => group * groupSize + i);
  const writes = numbers.map((n) => store.insert(pairs, { id: `${n}`, left: n, right: n, filling }));
  inserts.push(...(await Promise.allSettled(writes)));
}
const foundAfterwards = await Promise.all(inserts.map(async (_, n) => (await store.get(pairs, `${n}`)) !== undefined));

await blobs.createUpload('large');
const appended = await codeOf(blobs.appendUpload('large', 0, bytesOf(randomBytes(5_000_000))));
const kept = await blobs.statUpload('large');

execFileSync('prlimit', ['--pid', `${process.pid}`, '--fsize=unlimited']);
await store.insert(pairs, { id: 'later', left: 1, right: 1, filling });
const later = await store.get(pairs, 'later');

process.stdout.write(
  JSON.stringify({
    acknowledged: inserts.map(({ status }) => status === 'fulfilled'),
    errorCodes: inserts.flatMap((insert) =>
      insert.status === 'rejected' ? [(insert.reason as { code: string }).code] : [],
    ),
    foundAfterwards,
    appended,
    keptBytes: kept?.sizeBytes,
    later: later?.left,
  }),
);

async function codeOf(operation: Promise<unknown>): Promise<string> {
  return await operation.then(
    () => 'done',
    (error: { code: string }) => error.code,
  );
}
