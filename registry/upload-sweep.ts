import type { Blobs } from '../core/blobs/blobs.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';
import type { Store } from '../core/store/store.ts';
import { uploadSessions } from './documents.ts';

interface Parts {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
}

/** A push that has not gone on for a day was given up. */
const maxIdleMs = 24 * 3_600_000;

/** Takes away uploads that were given up, and what crashes left of others: bytes without a session, or the reverse. */
export async function sweepUploads({ store, blobs, clock, log }: Parts, signal: AbortSignal): Promise<void> {
  const before = new Date(clock.now().getTime() - maxIdleMs);
  let swept = 0;
  for await (const uploadId of blobs.listUploads()) {
    if (signal.aborted) return;
    const upload = await blobs.statUpload(uploadId);
    if (!upload || upload.touchedAt >= before) continue;
    await store.delete(uploadSessions, uploadId);
    if (await blobs.deleteUpload(uploadId)) swept += 1;
  }
  for (const { id } of await store.find(uploadSessions, { index: 'byStart', range: { before } })) {
    if (signal.aborted) return;
    if (!(await blobs.statUpload(id))) await store.delete(uploadSessions, id);
  }
  if (swept > 0) log.info({ uploads: swept }, 'Took away uploads that were given up');
}
