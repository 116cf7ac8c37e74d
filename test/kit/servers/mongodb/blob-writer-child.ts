/**
 * Publishes blobs at full speed until it is killed, and prints the digest of each once that was acknowledged.
 * Arguments: the URL and the name of a database.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { openGridFsBlobs } from '../../../../core/blobs/gridfs.ts';
import { silentLog } from '../../../../core/log/log.ts';
import { bytesOf } from '../../registry/byte-source.ts';
import { hashing } from '../../registry/hashing.ts';

/** Small, so that each blob has several. */
const chunkBytes = 64 * 1024;

const [url = '', database = ''] = process.argv.slice(2);
const blobs = await openGridFsBlobs({ hashing, url, database, log: silentLog(), chunkBytes });

async function publish(): Promise<never> {
  for (;;) {
    const parts = Array.from({ length: 4 }, () => randomBytes(50_000));
    const hash = createHash('sha256');
    for (const part of parts) hash.update(part);
    const digest = `sha256:${hash.digest('hex')}`;
    const uploadId = randomUUID();
    await blobs.createUpload(uploadId);
    await blobs.appendUpload(uploadId, 0, bytesOf(...parts));
    await blobs.publishUpload(uploadId, digest);
    process.stdout.write(`${digest}\n`);
  }
}

await Promise.all([0, 1, 2, 3].map(publish));
