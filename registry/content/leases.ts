/**
 * Leases of content. A client that has pushed or mounted content, or learned that it exists, will soon push a manifest that
 * refers to it; until then nothing refers to it. So each of these requests renews `usedAt`, and the collector keeps content
 * that was used within the lease.
 *
 * The collector deletes under the condition that `usedAt` is as it read it, and the result of a renewal says whether the content
 * exists. So either the renewal comes first and the deletion fails, or the deletion comes first and the renewal reports that the
 * content is gone.
 */
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Collection, Store } from '../../core/store/store.ts';
import { blobLinks, contentId, manifests } from './documents.ts';
import type { BlobLink, StoredManifest } from './documents.ts';

interface Parts {
  readonly store: Store;
  readonly gc: { readonly leaseMs: number };
}

/** A lease that was renewed within this share of it is not written again: an hour of a day. */
const renewedShare = 1 / 24;

/** A push that takes longer than this share of a lease renews it again: the rest is a wide margin. */
const safeShare = 1 / 2;

/** Renews the lease of a blob. Returns its size, or `undefined` if the repository has no link to it or its bytes are missing. */
export async function renewBlob(
  parts: Parts & { readonly blobs: Blobs },
  repository: string,
  digest: string,
): Promise<number | undefined> {
  const link = await renew(parts, blobLinks, contentId(repository, digest));
  return link && (await parts.blobs.stat(digest))?.sizeBytes;
}

/** Renews the lease of a manifest. `undefined` if the repository has no such manifest. */
export async function renewManifest(
  parts: Parts,
  repository: string,
  digest: string,
): Promise<StoredManifest | undefined> {
  return await renew(parts, manifests, contentId(repository, digest));
}

/** Whether content whose lease was renewed at `renewedAt`, in the store's time, may have been deleted since. */
export async function mayHaveExpired({ store, gc }: Parts, renewedAt: Date): Promise<boolean> {
  return (await store.now()).getTime() - renewedAt.getTime() > gc.leaseMs * safeShare;
}

async function renew<T extends BlobLink | StoredManifest>(
  { store, gc }: Parts,
  documents: Collection<T>,
  id: string,
): Promise<T | undefined> {
  const usedAt = await store.now();
  const staleBefore = usedAt.getTime() - gc.leaseMs * renewedShare;
  return await store.update(documents, id, (current) =>
    current.usedAt.getTime() >= staleBefore ? current : { ...current, usedAt },
  );
}
