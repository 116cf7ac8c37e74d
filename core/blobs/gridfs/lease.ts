/**
 * Exclusive access to an upload, across processes. A lease expires without renewals, so the uploads of a dead process are
 * released soon. All times are the server's. `writer.ts` keeps a holder whose lease has expired from changing bytes.
 */
import { ObjectId } from 'mongodb';
import type { Filter, UpdateFilter } from 'mongodb';
import { PeriodicTask } from '../../async/periodic-task.ts';
import type { Clock } from '../../clock/clock.ts';
import { BlobsError, unknownUpload, uploadBusy } from '../blobs.ts';
import { retryIdempotent, blobErrors } from './errors.ts';
import type { Layout, UploadRecord } from './layout.ts';

/** Long enough for a slow majority or a failover; short, because a client whose registry died waits for it. */
export const leaseMs = 15_000;

/** Three renewals may fail before the lease expires. */
const renewEveryMs = 4_000;

/** An upload and the token of its holder. */
export interface HeldUpload {
  readonly upload: UploadRecord;
  readonly holder: ObjectId;
}

/**
 * Acquires the lease of an upload, and marks the upload with the digest under which it will be published, if any. Throws
 * `BlobsError` `upload-unknown` or `upload-busy`.
 */
export async function acquireUpload(layout: Layout, uploadId: string, publishing?: string): Promise<HeldUpload> {
  const holder = new ObjectId();
  const expired = { $expr: { $lt: ['$heldAt', { $subtract: ['$$NOW', leaseMs] }] } };
  const free: Filter<UploadRecord> = {
    _id: uploadId,
    $or: [{ holder: null }, { holder }, expired],
  } as object;
  const acquired: UpdateFilter<UploadRecord> = {
    $set: { holder, ...(publishing !== undefined && { publishing }) },
    $currentDate: { heldAt: true },
  };
  // The document before the update shows whether the upload was published already.
  const upload = await retryIdempotent(
    async () => await layout.uploads.findOneAndUpdate(free, acquired, { returnDocument: 'before' }),
  );
  if (upload && !(await removeIfPublished(layout, upload))) return { upload, holder };
  const current = upload ? null : await layout.uploads.findOne({ _id: uploadId });
  if (!current || (await removeIfPublished(layout, current))) throw unknownUpload(uploadId);
  throw uploadBusy(uploadId);
}

/** Renews a lease, and saves the upload's size with it, until it is released. */
export class UploadLease {
  readonly #layout: Layout;
  readonly #held: HeldUpload;
  readonly #lost = new AbortController();
  readonly #renewal: PeriodicTask;
  readonly #sizeBytes: () => number;
  #savedBytes: number;
  #confirmedAtMs = performance.now();

  /** @param sizeBytes - returns how many bytes are durable */
  constructor(layout: Layout, held: HeldUpload, clock: Clock, sizeBytes: () => number) {
    this.#layout = layout;
    this.#held = held;
    this.#sizeBytes = sizeBytes;
    this.#savedBytes = held.upload.sizeBytes;
    this.#renewal = new PeriodicTask(clock, renewEveryMs, async () => await this.#renew());
  }

  /** Aborts when another process holds the lease, or renewals have failed for as long as it lasts. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Renews the lease. Throws `upload-unknown` or `upload-busy` if it is lost. */
  async confirm(): Promise<void> {
    await this.#save({ $currentDate: { heldAt: true } });
  }

  /** Releases the upload and saves its size. Throws `upload-unknown` if it was deleted meanwhile. */
  async release(): Promise<void> {
    await this.#renewal[Symbol.asyncDispose]();
    await this.#save({ $unset: { holder: true, heldAt: true, publishing: true } });
  }

  /** Stops the renewals. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#renewal[Symbol.asyncDispose]();
  }

  async #renew(): Promise<void> {
    try {
      await blobErrors(async () => await this.confirm());
    } catch (error) {
      const isLost = error instanceof BlobsError && error.code !== 'unavailable';
      if (isLost || performance.now() - this.#confirmedAtMs > leaseMs) this.#lost.abort(error);
    }
  }

  async #save(change: UpdateFilter<UploadRecord>): Promise<void> {
    const { upload, holder } = this.#held;
    const begunAtMs = performance.now();
    const sizeBytes = this.#sizeBytes();
    const dates = { ...change.$currentDate, ...(sizeBytes > this.#savedBytes && { touchedAt: true as const }) };
    const saved: UpdateFilter<UploadRecord> = {
      ...change,
      $set: { sizeBytes },
      ...(Object.keys(dates).length > 0 && { $currentDate: dates }),
    };
    const held = { _id: upload._id, file: upload.file, holder };
    const { matchedCount } = await retryIdempotent(async () => await this.#layout.uploads.updateOne(held, saved));
    if (matchedCount === 0) throw await this.#lostError(upload);
    this.#savedBytes = sizeBytes;
    this.#confirmedAtMs = begunAtMs;
  }

  async #lostError({ _id, file }: UploadRecord): Promise<BlobsError> {
    const still = await this.#layout.uploads.findOne({ _id, file });
    if (!still) return unknownUpload(_id);
    return new BlobsError('upload-busy', `Upload "${_id}" was acquired by another process after its lease expired`);
  }
}

/** Removes an upload that was published before a crash. @returns whether it was published */
export async function removeIfPublished(layout: Layout, upload: UploadRecord): Promise<boolean> {
  if (upload.publishing === undefined) return false;
  const blob = await layout.digests.findOne({ _id: upload.publishing, file: upload.file });
  if (!blob) return false;
  await layout.uploads.deleteOne({ _id: upload._id, file: upload.file });
  return true;
}
