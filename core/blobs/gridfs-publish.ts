import { Long, ObjectId } from 'mongodb';
import type { Clock } from '../clock/clock.ts';
import { isDuplicate } from '../store/mongodb-errors.ts';
import { digestMismatch } from './blobs.ts';
import { again } from './gridfs-errors.ts';
import type { BlobRecord, Layout, UploadRecord } from './gridfs-layout.ts';
import { takeUpload, UploadLease } from './gridfs-lease.ts';
import type { HeldUpload } from './gridfs-lease.ts';
import { doom } from './gridfs-trash.ts';

interface Publication {
  readonly layout: Layout;
  readonly clock: Clock;
  /** The server's. */
  readonly time: () => Promise<Date>;
  /** The digest of what an upload has, as long as the signal does not abort. */
  readonly digestOf: (upload: UploadRecord, signal: AbortSignal) => Promise<string>;
}

/** As `Blobs.publishUpload`: see `gridfs-layout.ts` for the order of the steps. */
export async function publish(publication: Publication, uploadId: string, digest: string): Promise<void> {
  const { layout, time } = publication;
  const held = await takeUpload(layout, uploadId, digest);
  await verify(publication, held, digest);
  const { _id, file, sizeBytes, chunkBytes } = held.upload;
  const blob: BlobRecord = { _id: digest, file, sizeBytes, chunkBytes, generation: new ObjectId() };
  const first = await layout.digests.findOne({ _id: digest });
  const existing = first?.sizeBytes === sizeBytes ? first : await showBlob(layout, blob, await time());
  if (existing && !existing.file.equals(file)) await doom(layout, file, _id);
  await again(async () => await layout.uploads.deleteOne({ _id, file }));
}

/** Keeps the lease for as long as bytes have to be read. Throws `digest-mismatch`, after the upload is free again. */
async function verify({ layout, clock, digestOf }: Publication, held: HeldUpload, digest: string): Promise<void> {
  const { upload } = held;
  await using lease = new UploadLease(layout, held, clock, () => upload.sizeBytes);
  try {
    const actual = await digestOf(upload, lease.lost);
    if (actual !== digest) throw digestMismatch(upload._id, { actual, digest });
  } catch (error) {
    await lease.giveBack();
    throw error;
  }
}

/**
 * Makes a blob visible, first for standard tools, then for everybody. One of another size is damaged, and is replaced.
 *
 * @returns the one that was there first, if there is.
 */
async function showBlob(layout: Layout, blob: BlobRecord, uploadDate: Date): Promise<BlobRecord | undefined> {
  const { files, digests } = layout;
  const { _id: filename, file, sizeBytes, chunkBytes } = blob;
  const standard = { length: Long.fromNumber(sizeBytes), chunkSize: chunkBytes, uploadDate, filename };
  await again(async () => await files.replaceOne({ _id: file }, standard, { upsert: true }));
  for (;;) {
    try {
      await again(async () => await digests.insertOne(blob));
      return undefined;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
    const first = await digests.findOne({ _id: filename });
    if (first?.sizeBytes === sizeBytes) return first;
    // If there is none, it was deleted in this moment.
    if (first && (await replaceBlob(layout, first, blob))) return undefined;
  }
}

/** @returns whether the damaged blob was still the one that is seen. */
async function replaceBlob(layout: Layout, damaged: BlobRecord, blob: BlobRecord): Promise<boolean> {
  await doom(layout, damaged.file);
  const { _id, file } = damaged;
  // Found replaced already, it was so by the write whose answer was lost.
  const mine = { _id, file: { $in: [file, blob.file] } };
  const { matchedCount } = await again(async () => await layout.digests.replaceOne(mine, blob));
  return matchedCount > 0;
}
