import { Long } from 'mongodb';
import { isDuplicate } from '../store/mongodb-errors.ts';
import { again } from './gridfs-errors.ts';
import type { BlobRecord, Layout } from './gridfs-layout.ts';

/** Makes a blob visible, first for standard tools, then for everybody. @returns the one that was there first, if there is. */
export async function showBlob(layout: Layout, blob: BlobRecord, uploadDate: Date): Promise<BlobRecord | undefined> {
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
    if (first) return first;
    // It was deleted in this moment.
  }
}
