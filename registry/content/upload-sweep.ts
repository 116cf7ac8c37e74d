import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { uploadSessions } from './documents.ts';

interface Parts {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
}

/** A push that has not gone on for a day was given up. */
const maxIdleMs = 24 * 3_600_000;

/**
 * Takes away uploads that were given up, and what crashes left of others: bytes without a session, or the reverse.
 *
 * @returns how many uploads went; in a dry run, how many would go.
 */
export async function sweepUploads(
  { store, blobs, clock }: Parts,
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
  for (const { id } of await store.find(uploadSessions, { index: 'byStart', range: { before } })) {
    signal.throwIfAborted();
    if (!isDry && !(await blobs.statUpload(id))) await store.delete(uploadSessions, id);
  }
  return swept;
}
