/**
 * Leases of content. A client that has pushed or mounted something, or was told that it is here, builds on it soon; until
 * then nothing refers to it. So each of these renews `usedAt`, and what was used within the lease is not collected.
 *
 * The collector deletes under the condition that `usedAt` is as it read it, and who builds on content takes what the renewal
 * returns for whether it is here. So either the renewal comes first and the deletion fails, or the deletion comes first and
 * whoever builds on it is told that it is gone.
 */
import type { Collection, Store } from '../../core/store/store.ts';
import { blobLinks, contentId, manifests } from './documents.ts';
import type { BlobLink, StoredManifest } from './documents.ts';

interface Parts {
  readonly store: Store;
  readonly collection: { readonly leaseMs: number };
}

/** A lease that was renewed within this share of it is not written again: an hour of a day. */
const renewedShare = 1 / 24;

/** Who takes longer than this share of a lease, from renewing to building, renews again: the rest is a wide margin. */
const safeShare = 1 / 2;

/** Renews the lease of a repository's link to a blob. `undefined` if there is none. */
export async function renewLink(parts: Parts, repository: string, digest: string): Promise<BlobLink | undefined> {
  return await renew(parts, blobLinks, contentId(repository, digest));
}

/** Renews the lease of a manifest. `undefined` if there is none. */
export async function renewManifest(
  parts: Parts,
  repository: string,
  digest: string,
): Promise<StoredManifest | undefined> {
  return await renew(parts, manifests, contentId(repository, digest));
}

/** Whether what was renewed at `renewedAt`, in the store's time, may be gone by now if nothing refers to it. */
export async function mayHaveRunOut({ store, collection }: Parts, renewedAt: Date): Promise<boolean> {
  return (await store.now()).getTime() - renewedAt.getTime() > collection.leaseMs * safeShare;
}

async function renew<T extends BlobLink | StoredManifest>(
  { store, collection }: Parts,
  documents: Collection<T>,
  id: string,
): Promise<T | undefined> {
  const usedAt = await store.now();
  const staleBefore = usedAt.getTime() - collection.leaseMs * renewedShare;
  return await store.update(documents, id, (current) =>
    current.usedAt.getTime() >= staleBefore ? current : { ...current, usedAt },
  );
}
