import type { ObjectId } from 'mongodb';
import { again } from './gridfs-errors.ts';
import { removeIfPublished } from './gridfs-lease.ts';
import type { Layout, TrashRecord } from './gridfs-layout.ts';

/** How long chunks stay after their name went: whoever reads them is done by then, or says every now and then that not. */
export const removalGraceMs = 3_600_000;

/** Has the chunks of a file removed some time after its name. To be called before that is taken away. */
export async function doom({ trash }: Layout, file: ObjectId, upload?: string): Promise<void> {
  const change = { $currentDate: { doomedAt: true as const }, ...(upload !== undefined && { $set: { upload } }) };
  await again(async () => await trash.updateOne({ _id: file }, change, { upsert: true }));
}

/** Says that a file is being read: if it is in the trash, it stays for another while. */
export async function postponeRemoval({ trash }: Layout, file: ObjectId): Promise<void> {
  await trash.updateOne({ _id: file }, { $currentDate: { doomedAt: true } });
}

/**
 * Finishes what crashes left: uploads that are published already, and chunks without a name. Any number of processes may do
 * this at the same time.
 *
 * @returns how many files were removed.
 */
export async function tidy(layout: Layout, graceMs: number, signal: AbortSignal): Promise<number> {
  for (const upload of await layout.uploads.find({ publishing: { $ne: null } } as object).toArray()) {
    signal.throwIfAborted();
    await removeIfPublished(layout, upload);
  }
  const due = { $expr: { $lt: ['$doomedAt', { $subtract: ['$$NOW', graceMs] }] } };
  let removed = 0;
  for (const entry of await layout.trash.find(due).toArray()) {
    signal.throwIfAborted();
    if (await removeFile(layout, entry)) removed += 1;
  }
  return removed;
}

async function removeFile(layout: Layout, { _id, doomedAt, upload }: TrashRecord): Promise<boolean> {
  const isNamed = await hasName(layout, _id, upload);
  if (!isNamed) {
    await layout.chunks.deleteMany({ files_id: _id });
    await layout.files.deleteOne({ _id });
  }
  // Not if it was put there once more, or is being read: then there is another while to wait. A server may know the time
  // more exactly than it says.
  await layout.trash.deleteOne({ _id, doomedAt: { $lt: new Date(doomedAt.getTime() + 1) } });
  return !isNamed;
}

async function hasName({ uploads, files, digests }: Layout, file: ObjectId, upload?: string): Promise<boolean> {
  if (upload !== undefined && (await uploads.findOne({ _id: upload, file }))) return true;
  const digest = (await files.findOne({ _id: file }))?.filename;
  return digest !== undefined && (await digests.findOne({ _id: digest, file })) !== null;
}
