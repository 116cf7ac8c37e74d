import { Long, ObjectId } from 'mongodb';
import type { Clock } from '../../clock/clock.ts';
import { isDuplicate } from '../../store/mongodb/errors.ts';
import { assertSameDigest } from '../blobs.ts';
import { retryIdempotent } from './errors.ts';
import type { BlobRecord, Layout, UploadRecord } from './layout.ts';
import { acquireUpload, UploadLease } from './lease.ts';
import type { HeldUpload } from './lease.ts';
import { scheduleDeletion } from './trash.ts';

interface Publication {
  readonly layout: Layout;
  readonly clock: Clock;
  /** Reads the server's time. */
  readonly time: () => Promise<Date>;
  /** Computes the digest of an upload until the signal aborts. */
  readonly digestOf: (upload: UploadRecord, signal: AbortSignal) => Promise<string>;
}

/** Implements `Blobs.publishUpload`; `layout.ts` has the order of the steps. */
export async function publish(publication: Publication, uploadId: string, digest: string): Promise<void> {
  const { layout, time } = publication;
  const held = await acquireUpload(layout, uploadId, digest);
  await verify(publication, held, digest);
  const { _id, file, sizeBytes, chunkBytes } = held.upload;
  const blob: BlobRecord = { _id: digest, file, sizeBytes, chunkBytes, generation: new ObjectId() };
  const first = await layout.digests.findOne({ _id: digest });
  const existing = first?.sizeBytes === sizeBytes ? first : await showBlob(layout, blob, await time());
  if (existing && !existing.file.equals(file)) await scheduleDeletion(layout, file, _id);
  await retryIdempotent(async () => await layout.uploads.deleteOne({ _id, file }));
}

/** Verifies the digest, and renews the lease meanwhile. Throws `digest-mismatch`, after it has released the upload. */
async function verify({ layout, clock, digestOf }: Publication, held: HeldUpload, digest: string): Promise<void> {
  const { upload } = held;
  await using lease = new UploadLease(layout, held, clock, () => upload.sizeBytes);
  try {
    const actual = await digestOf(upload, lease.lost);
    assertSameDigest(upload._id, actual, digest);
  } catch (error) {
    await lease.release();
    throw error;
  }
}

/**
 * Makes a blob visible: first in GridFS's own collection, for standard tools, then here. An existing blob of another size is
 * damaged, and is replaced.
 *
 * @returns the existing blob, if there is one
 */
async function showBlob(layout: Layout, blob: BlobRecord, uploadDate: Date): Promise<BlobRecord | undefined> {
  const { files, digests } = layout;
  const { _id: filename, file, sizeBytes, chunkBytes } = blob;
  const standard = { length: Long.fromNumber(sizeBytes), chunkSize: chunkBytes, uploadDate, filename };
  await retryIdempotent(async () => await files.replaceOne({ _id: file }, standard, { upsert: true }));
  for (;;) {
    try {
      await retryIdempotent(async () => await digests.insertOne(blob));
      return undefined;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
    const first = await digests.findOne({ _id: filename });
    if (first?.sizeBytes === sizeBytes) return first;
    // Without a result, the existing blob was deleted just now.
    if (first && (await replaceBlob(layout, first, blob))) return undefined;
  }
}

/** @returns whether the damaged blob was still the published one */
async function replaceBlob(layout: Layout, damaged: BlobRecord, blob: BlobRecord): Promise<boolean> {
  await scheduleDeletion(layout, damaged.file);
  const { _id, file } = damaged;
  // The blob may already be replaced by a write of this process whose answer was lost.
  const mine = { _id, file: { $in: [file, blob.file] } };
  const { matchedCount } = await retryIdempotent(async () => await layout.digests.replaceOne(mine, blob));
  return matchedCount > 0;
}
