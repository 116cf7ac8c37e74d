import { createHash } from 'node:crypto';
import { BlobsError } from '../../core/blobs/blobs.ts';
import type { Blobs } from '../../core/blobs/blobs.ts';
import { upsert } from '../../core/store/upsert.ts';
import { algorithmOf } from '../content/digests.ts';
import { blobLinks, tombstones } from '../content/documents.ts';
import { deletingTombstone, dropTombstone } from './bytes.ts';
import type { Problem } from './events.ts';
import type { Turn } from './turn.ts';
import type { Verifying } from './verifying.ts';

/** How many repositories are named that have a damaged blob. */
const maxNamed = 10;

type Finding =
  | { readonly state: 'good'; readonly sizeBytes: number }
  | { readonly state: 'gone' }
  | { readonly state: 'damaged' | 'unreadable'; readonly why: string };

/** Reads every blob once, one after the other, and compares its bytes with its digest. */
export async function* verifyBlobs(verifying: Verifying): AsyncGenerator<Problem, void, undefined> {
  const { blobs, seen, signal, turn } = verifying;
  for await (const digest of blobs.list()) {
    const finding = await readBlob(blobs, digest, signal);
    if (finding.state === 'gone') continue;
    seen.blobs += 1;
    if (finding.state === 'good') {
      seen.bytes += finding.sizeBytes;
      continue;
    }
    const whose = await repositoriesWith(verifying, digest);
    // What cannot be read at the moment may be good.
    const repaired = finding.state === 'damaged' && turn ? await removeDamaged(verifying, turn, digest) : false;
    const kind = finding.state === 'damaged' ? 'blob-damaged' : 'blob-unreadable';
    const message = `${finding.why}; ${whose}${repaired ? '. Its bytes were removed, the next push stores them anew' : ''}`;
    yield { type: 'problem', kind, digest, message, repaired };
  }
}

async function readBlob(blobs: Blobs, digest: string, signal: AbortSignal): Promise<Finding> {
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
    // If the blobs as a whole are down, this fails too.
    await blobs.ping();
    if (!(await blobs.stat(digest))) return { state: 'gone' };
    const why = `Its bytes cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return { state: error instanceof BlobsError && error.code === 'damaged' ? 'damaged' : 'unreadable', why };
  }
  const actual = `${algorithm}:${hash.digest('hex')}`;
  return actual === digest ? { state: 'good', sizeBytes } : { state: 'damaged', why: `Its bytes have ${actual}` };
}

async function repositoriesWith({ store }: Verifying, digest: string): Promise<string> {
  const links = await store.find(blobLinks, { index: 'byDigest', equals: { digest }, limit: maxNamed + 1 });
  if (links.length === 0) return 'no repository has it';
  const names = links.slice(0, maxNamed).map(({ repository }) => repository);
  return `${names.join(', ')}${links.length > maxNamed ? ' and others have' : names.length > 1 ? ' have' : ' has'} it`;
}

/** Under a tombstone, so that nobody who pushes the blob takes the damaged bytes for theirs. */
async function removeDamaged({ store, blobs, signal }: Verifying, turn: Turn, digest: string): Promise<boolean> {
  await turn.prove();
  const deleting = await deletingTombstone(store, turn, digest);
  await upsert(store, tombstones, digest, () => deleting);
  const blob = await blobs.stat(digest);
  // Somebody may have replaced it since.
  const isDamaged = (await readBlob(blobs, digest, signal)).state === 'damaged';
  await turn.prove();
  const isRemoved = isDamaged && (await blobs.delete(digest, blob?.generation));
  await dropTombstone(store, turn, digest);
  return isRemoved;
}
