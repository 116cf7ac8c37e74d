import { createHash } from 'node:crypto';
import { BlobsError } from '../../core/blobs/blobs.ts';
import type { Blobs } from '../../core/blobs/blobs.ts';
import { upsert } from '../../core/store/upsert.ts';
import { algorithmOf } from '../../core/hash/hash.ts';
import { blobLinks, tombstones } from '../content/documents.ts';
import { deletingTombstone, dropTombstone } from './sweep-blobs.ts';
import type { Problem } from './events.ts';
import type { GcRun } from './gc-run.ts';
import type { LeaderLease } from './leader-lease.ts';

/** How many of the repositories with a damaged blob a message names. */
const maxNamed = 10;

type Finding =
  | { readonly state: 'good'; readonly sizeBytes: number }
  | { readonly state: 'gone' }
  | { readonly state: 'damaged' | 'unreadable'; readonly why: string };

/** Reads every blob once, one after the other, and compares its bytes with its digest. */
export async function* verifyBlobs(
  run: GcRun,
  seen: { blobs: number; bytes: number },
): AsyncGenerator<Problem, void, undefined> {
  const { blobs, signal, lease } = run;
  for await (const digest of blobs.list()) {
    const finding = await verifyBlob(blobs, digest, signal);
    if (finding.state === 'gone') continue;
    seen.blobs += 1;
    if (finding.state === 'good') {
      seen.bytes += finding.sizeBytes;
      continue;
    }
    const usedBy = await repositoriesWith(run, digest);
    // A blob that cannot be read at the moment may be intact.
    const repaired = finding.state === 'damaged' && lease ? await removeDamaged(run, lease, digest) : false;
    const kind = finding.state === 'damaged' ? 'blob-damaged' : 'blob-unreadable';
    const message = `${finding.why}; ${usedBy}${repaired ? '. Its bytes were removed, the next push stores them again' : ''}`;
    yield { type: 'problem', kind, digest, message, repaired };
  }
}

async function verifyBlob(blobs: Blobs, digest: string, signal: AbortSignal): Promise<Finding> {
  const algorithm = algorithmOf(digest);
  const hash = createHash(algorithm);
  let sizeBytes = 0;
  try {
    const bytes = await blobs.read(digest);
    if (!bytes) return { state: 'gone' };
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      hash.update(chunk);
      sizeBytes += chunk.length;
    }
  } catch (error) {
    signal.throwIfAborted();
    // Fails if the driver as a whole is down.
    await blobs.ping();
    if (!(await blobs.stat(digest))) return { state: 'gone' };
    const why = `Its bytes cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return { state: error instanceof BlobsError && error.code === 'damaged' ? 'damaged' : 'unreadable', why };
  }
  const actual = `${algorithm}:${hash.digest('hex')}`;
  return actual === digest
    ? { state: 'good', sizeBytes }
    : { state: 'damaged', why: `Its bytes have the digest ${actual}` };
}

async function repositoriesWith({ store }: GcRun, digest: string): Promise<string> {
  const links = await store.find(blobLinks, { index: 'byDigest', equals: { digest }, limit: maxNamed + 1 });
  if (links.length === 0) return 'no repository has it';
  const names = links.slice(0, maxNamed).map(({ repository }) => repository);
  return `${names.join(', ')}${links.length > maxNamed ? ' and others have' : names.length > 1 ? ' have' : ' has'} it`;
}

/** Removes damaged bytes under a tombstone, so that a push of the blob does not reuse them. */
async function removeDamaged({ store, blobs, signal }: GcRun, lease: LeaderLease, digest: string): Promise<boolean> {
  await lease.confirm();
  const deleting = await deletingTombstone(store, lease, digest);
  await upsert(store, tombstones, digest, () => deleting);
  const blob = await blobs.stat(digest);
  // A push may have replaced them since.
  const isDamaged = (await verifyBlob(blobs, digest, signal)).state === 'damaged';
  await lease.confirm();
  const isRemoved = isDamaged && (await blobs.delete(digest, blob?.generation));
  await dropTombstone(store, lease, digest);
  return isRemoved;
}
