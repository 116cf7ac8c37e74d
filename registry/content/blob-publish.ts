/**
 * Links blobs to repositories while a collector may be removing bytes that no repository links to (`gc/sweep-blobs.ts`). A push
 * writes the link first and reads the tombstone after that; the collector marks the tombstone first and reads the links after
 * that. So the later of the two detects the other.
 */
import type { ContentContext } from '../context.ts';
import { RegistryError } from '../errors.ts';
import { linkBlob } from './blob-links.ts';
import { blobLinks, tombstones } from './documents.ts';

interface Blob {
  readonly repository: string;
  readonly digest: string;
  readonly sizeBytes: number;
}

/** Removing one blob takes milliseconds. Another collector takes over from a dead one when the lease expires, after 15 s. */
const maxWaitMs = 20_000;

const checkEveryMs = 50;

/** After this many checks, finishes the removal itself if the collector is dead. */
const checksBeforeHelp = 20;

/**
 * Makes an upload, whose bytes have this digest and size, a blob of a repository. The caller has compared the digest: a link to
 * a digest shows the bytes that other clients have pushed. The link shows nothing until the bytes are published; after a crash
 * in between, repeating the push publishes them.
 */
export async function publishUpload(
  context: ContentContext,
  upload: Blob & { readonly uploadId: string },
): Promise<void> {
  const { repository, uploadId, digest, sizeBytes } = upload;
  const isCounted = await context.quota.counts(repository, digest);
  await linkBlob(context, repository, { digest, sizeBytes });
  await keepBytes(context, digest);
  await context.blobs.publishUpload(uploadId, digest);
  if (isCounted) context.quota.release(repository, sizeBytes);
}

/** Links a stored blob to another repository. @returns whether its bytes still exist. */
export async function shareBlob(context: ContentContext, blob: Blob): Promise<boolean> {
  const { store, blobs } = context;
  const link = await linkBlob(context, blob.repository, blob);
  await keepBytes(context, blob.digest);
  if (await blobs.stat(blob.digest)) return true;
  // The link stays if another client has pushed the blob meanwhile.
  await store.delete(blobLinks, link.id, ({ usedAt }) => usedAt.getTime() === link.usedAt.getTime());
  return false;
}

/**
 * Prevents the removal of the bytes of a digest that was just linked: deletes a tombstone that marks them, and waits for a
 * removal in progress. Throws `unavailable` if the removal does not end.
 */
async function keepBytes({ store, clock, collector, signal }: ContentContext, digest: string): Promise<void> {
  for (let check = 1; check <= maxWaitMs / checkEveryMs; check += 1) {
    const tombstone = await store.get(tombstones, digest);
    if (!tombstone) return;
    if (tombstone.state === 'marked') {
      if (await store.delete(tombstones, digest, ({ state }) => state === 'marked')) return;
    } else {
      await clock.sleep(checkEveryMs, signal);
      if (check % checksBeforeHelp === 0) await collector.finishRemovals();
    }
  }
  throw new RegistryError('unavailable', { headers: { 'retry-after': '5' } });
}
