/**
 * Having an upload to oneself, across processes. A lease is lost when its holder is silent, so what a dead process held is
 * free again soon; all times are the server's. A holder that was silent for too long cannot do harm either: see
 * `gridfs-writer.ts`.
 */
import { ObjectId } from 'mongodb';
import type { Filter, UpdateFilter } from 'mongodb';
import { PeriodicTask } from '../async/periodic-task.ts';
import type { Clock } from '../clock/clock.ts';
import { BlobsError } from './blobs.ts';
import { again, blobErrors, unknownUpload } from './gridfs-errors.ts';
import type { Layout, UploadRecord } from './gridfs-layout.ts';

/** Long enough for a slow majority or a change of primary, short enough that a client whose registry died can go on soon. */
export const leaseMs = 15_000;

/** Three renewals may fail. */
const renewEveryMs = 4_000;

/** An upload, and the token by which it is held. */
export interface HeldUpload {
  readonly upload: UploadRecord;
  readonly holder: ObjectId;
}

/**
 * Takes an upload, and marks it with the digest under which it is to be published, if any. Throws `BlobsError`
 * `upload-unknown` or `upload-busy`.
 */
export async function takeUpload(layout: Layout, uploadId: string, publishing?: string): Promise<HeldUpload> {
  const holder = new ObjectId();
  const silent = { $expr: { $lt: ['$heldAt', { $subtract: ['$$NOW', leaseMs] }] } };
  const free: Filter<UploadRecord> = {
    _id: uploadId,
    $or: [{ holder: null }, { holder }, silent],
  } as object;
  const taken: UpdateFilter<UploadRecord> = {
    $set: { holder, ...(publishing !== undefined && { publishing }) },
    $currentDate: { heldAt: true },
  };
  // What was there before tells whether it is published already.
  const upload = await again(
    async () => await layout.uploads.findOneAndUpdate(free, taken, { returnDocument: 'before' }),
  );
  if (upload && !(await removeIfPublished(layout, upload))) return { upload, holder };
  const current = upload ? null : await layout.uploads.findOne({ _id: uploadId });
  if (!current || (await removeIfPublished(layout, current))) throw unknownUpload(uploadId);
  throw new BlobsError('upload-busy', `Upload "${uploadId}" is in use, try again later`);
}

/** Keeps a lease, and the size that is known of its upload, until it is given back. */
export class UploadLease {
  readonly #layout: Layout;
  readonly #held: HeldUpload;
  readonly #lost = new AbortController();
  readonly #renewal: PeriodicTask;
  readonly #sizeBytes: () => number;
  #savedBytes: number;
  #provenAtMs = performance.now();

  /** `sizeBytes` tells how much is durable by now. */
  constructor(layout: Layout, held: HeldUpload, clock: Clock, sizeBytes: () => number) {
    this.#layout = layout;
    this.#held = held;
    this.#sizeBytes = sizeBytes;
    this.#savedBytes = held.upload.sizeBytes;
    this.#renewal = new PeriodicTask(clock, renewEveryMs, async () => await this.#renew());
  }

  /** Aborts when the lease is lost, or cannot be proven for as long as it lasts. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Resolves if the lease is held still. Throws `upload-unknown` or `upload-busy`. */
  async prove(): Promise<void> {
    await this.#save({ $currentDate: { heldAt: true } });
  }

  /** Gives the upload back, and says how large it is now. Throws `upload-unknown` if it was deleted meanwhile. */
  async giveBack(): Promise<void> {
    await this.#renewal[Symbol.asyncDispose]();
    await this.#save({ $unset: { holder: true, heldAt: true, publishing: true } });
  }

  /** Stops the renewals, whether or not the upload could be released. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#renewal[Symbol.asyncDispose]();
  }

  async #renew(): Promise<void> {
    try {
      await blobErrors(async () => await this.prove());
    } catch (error) {
      const isOver = error instanceof BlobsError && error.code !== 'unavailable';
      if (isOver || performance.now() - this.#provenAtMs > leaseMs) this.#lost.abort(error);
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
    const mine = { _id: upload._id, file: upload.file, holder };
    const { matchedCount } = await again(async () => await this.#layout.uploads.updateOne(mine, saved));
    if (matchedCount === 0) throw await this.#whyLost(upload);
    this.#savedBytes = sizeBytes;
    this.#provenAtMs = begunAtMs;
  }

  async #whyLost({ _id, file }: UploadRecord): Promise<BlobsError> {
    const still = await this.#layout.uploads.findOne({ _id, file });
    if (!still) return unknownUpload(_id);
    return new BlobsError('upload-busy', `Upload "${_id}" was taken over while nothing was heard from here`);
  }
}

/** Ends an upload that was published before a crash. @returns whether it was. */
export async function removeIfPublished(layout: Layout, upload: UploadRecord): Promise<boolean> {
  if (upload.publishing === undefined) return false;
  const blob = await layout.digests.findOne({ _id: upload.publishing, file: upload.file });
  if (!blob) return false;
  await layout.uploads.deleteOne({ _id: upload._id, file: upload.file });
  return true;
}
