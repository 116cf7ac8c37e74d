/** Publishes blobs at full speed until it is killed, and prints the digest of each once that was acknowledged. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { openFileBlobs } from '../../core/blobs/filesystem.ts';
import { silentLog } from '../../core/log/log.ts';
import { bytesOf } from '../kit/registry/byte-source.ts';
import { hashing } from '../kit/registry/hashing.ts';

const [folder = ''] = process.argv.slice(2);
const blobs = await openFileBlobs({ hashing, folder, log: silentLog() });

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
