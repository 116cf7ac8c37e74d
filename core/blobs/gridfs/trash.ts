import type { ObjectId } from 'mongodb';
import type { Log } from '../../log/log.ts';
import { retryIdempotent } from './errors.ts';
import { removeIfPublished } from './lease.ts';
import type { Layout, TrashRecord } from './layout.ts';

/** How long the chunks of a deleted blob are kept for its readers. A reader that needs longer postpones their deletion. */
export const deletionGraceMs = 3_600_000;

/** Schedules the deletion of a file's chunks. Called before the file's name is deleted. */
export async function scheduleDeletion({ trash }: Layout, file: ObjectId, upload?: string): Promise<void> {
  const change = { $currentDate: { scheduledAt: true as const }, ...(upload !== undefined && { $set: { upload } }) };
  await retryIdempotent(async () => await trash.updateOne({ _id: file }, change, { upsert: true }));
}

/** Postpones the deletion of a file that is being read. */
export async function postponeDeletion({ trash }: Layout, file: ObjectId): Promise<void> {
  await trash.updateOne({ _id: file }, { $currentDate: { scheduledAt: true } });
}

/** Few, because the server closes a cursor that is idle for ten minutes while the records of a batch are removed. */
const batch = { batchSize: 16 };

interface CleanUp {
  readonly graceMs: number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Deletes files whose grace period has ended, and the uploads that a crash left after their publication. Any number of processes
 * may do this at the same time. Logs a record that cannot be removed, and continues with the next one.
 *
 * @returns how many files were deleted
 */
export async function emptyTrash(layout: Layout, { graceMs, log, signal }: CleanUp): Promise<number> {
  const attempt = async (about: object, remove: () => Promise<boolean>): Promise<boolean> => {
    signal.throwIfAborted();
    try {
      return await remove();
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, ...about }, 'Cannot remove bytes of a deleted blob or upload');
      return false;
    }
  };
  for await (const upload of layout.uploads.find({ publishing: { $ne: null } } as object, batch)) {
    await attempt({ upload: upload._id }, async () => await removeIfPublished(layout, upload));
  }
  const due = { $expr: { $lt: ['$scheduledAt', { $subtract: ['$$NOW', graceMs] }] } };
  let removed = 0;
  for await (const entry of layout.trash.find(due, batch)) {
    if (await attempt({ file: entry._id.toHexString() }, async () => await removeFile(layout, entry))) removed += 1;
  }
  return removed;
}

async function removeFile(layout: Layout, { _id, scheduledAt, upload }: TrashRecord): Promise<boolean> {
  const isNamed = await hasName(layout, _id, upload);
  if (!isNamed) {
    await layout.chunks.deleteMany({ files_id: _id });
    await layout.files.deleteOne({ _id });
  }
  // Unless the deletion was scheduled again or postponed meanwhile. A server may store times more precisely than it returns them.
  await layout.trash.deleteOne({ _id, scheduledAt: { $lt: new Date(scheduledAt.getTime() + 1) } });
  return !isNamed;
}

async function hasName({ uploads, files, digests }: Layout, file: ObjectId, upload?: string): Promise<boolean> {
  if (upload !== undefined && (await uploads.findOne({ _id: upload, file }))) return true;
  const digest = (await files.findOne({ _id: file }))?.filename;
  return digest !== undefined && (await digests.findOne({ _id: digest, file })) !== null;
}
