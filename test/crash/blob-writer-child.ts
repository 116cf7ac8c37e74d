/**
 * Publishes blobs at full speed until it is killed, and prints the digest of each acknowledged blob. Arguments: a folder, or the
 * URL and the name of a database.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { openFileBlobs } from '../../core/blobs/filesystem/filesystem.ts';
import { openGridFsBlobs } from '../../core/blobs/gridfs/gridfs.ts';
import { silentLog } from '../../core/log/log.ts';
import { bytesOf } from '../kit/registry/byte-source.ts';
import { hashing } from '../kit/registry/hashing.ts';

/** Small, so that each blob has several chunks. */
const chunkBytes = 64 * 1024;

const [place = '', database] = process.argv.slice(2);
const log = silentLog();
const blobs =
  database === undefined
    ? await openFileBlobs({ hashing, folder: place, log })
    : await openGridFsBlobs({ hashing, url: place, database, log, chunkBytes });

async function publish(): Promise<never> {
  for (;;) {
    const chunks = Array.from({ length: 4 }, () => randomBytes(50_000));
    const hash = createHash('sha256');
    for (const chunk of chunks) hash.update(chunk);
    const digest = `sha256:${hash.digest('hex')}`;
    const uploadId = randomUUID();
    await blobs.createUpload(uploadId);
    await blobs.appendUpload(uploadId, 0, bytesOf(...chunks));
    await blobs.publishUpload(uploadId, digest);
    process.stdout.write(`${digest}\n`);
  }
}

await Promise.all([0, 1, 2, 3].map(publish));
