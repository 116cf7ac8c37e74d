/** Upload sessions: which exist, which request writes to each, and how they end without a blob. */
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import type { ContentContext } from '../context.ts';
import { RegistryError } from '../errors.ts';
import { uploadSessions } from './documents.ts';
import type { UploadSession } from './documents.ts';

export interface UploadTarget {
  readonly repository: string;
  readonly uploadId: string;
}

/** A push that has not continued for a day is abandoned. */
const maxIdleMs = 24 * 3_600_000;

/** The uploads that requests of this process are writing to, finishing or cancelling. */
export class BusyUploads {
  readonly #busy = new Set<string>();

  /** Reserves an upload for one request until disposed. Throws `upload-busy`. */
  reserve(uploadId: string): Disposable {
    if (this.#busy.has(uploadId)) throw new RegistryError('upload-busy');
    this.#busy.add(uploadId);
    return { [Symbol.dispose]: () => void this.#busy.delete(uploadId) };
  }
}

/** The session of this repository and caller, and its size so far. Throws `upload-unknown`. */
export async function openUpload(
  { store, blobs }: Pick<ContentContext, 'store' | 'blobs'>,
  subject: string,
  { repository, uploadId }: UploadTarget,
): Promise<{ session: UploadSession; sizeBytes: number }> {
  const session = await store.get(uploadSessions, uploadId);
  if (session?.repository !== repository || session.subject !== subject) throw new RegistryError('upload-unknown');
  const upload = await blobs.statUpload(uploadId);
  if (!upload) throw new RegistryError('upload-unknown');
  return { session, sizeBytes: upload.sizeBytes };
}

/**
 * Ends a session without a blob. Deletes the bytes first, because on a full disk the session may stay. The sweep of uploads
 * deletes the remains of a crash between the two.
 */
export async function discardUpload(
  { store, blobs, quota }: Pick<ContentContext, 'store' | 'blobs' | 'quota'>,
  { repository, uploadId }: UploadTarget,
): Promise<void> {
  const upload = await blobs.statUpload(uploadId);
  if (upload && (await blobs.deleteUpload(uploadId))) quota.release(repository, upload.sizeBytes);
  if (await store.delete(uploadSessions, uploadId)) quota.endUpload(repository);
}

/**
 * Deletes abandoned uploads, and the remains that crashes left: bytes without a session, or a session without bytes.
 *
 * @returns how many uploads were deleted; in a dry run, how many would be.
 */
export async function sweepUploads(
  { store, blobs, clock }: { readonly store: Store; readonly blobs: Blobs; readonly clock: Clock },
  { isDry, signal }: { readonly isDry: boolean; readonly signal: AbortSignal },
): Promise<number> {
  const before = new Date(clock.now().getTime() - maxIdleMs);
  let swept = 0;
  for await (const uploadId of blobs.listUploads()) {
    signal.throwIfAborted();
    const upload = await blobs.statUpload(uploadId);
    if (!upload || upload.touchedAt >= before) continue;
    if (!isDry) await store.delete(uploadSessions, uploadId);
    if (isDry || (await blobs.deleteUpload(uploadId))) swept += 1;
  }
  for await (const { id } of store.scan(uploadSessions, { index: 'byStart', range: { before } })) {
    signal.throwIfAborted();
    if (!isDry && !(await blobs.statUpload(id))) await store.delete(uploadSessions, id);
  }
  return swept;
}
