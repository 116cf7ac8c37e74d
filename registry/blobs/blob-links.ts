/** Which repository has which blob. */
import type { Blobs, OpenBlob } from '../../core/blobs/blobs.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { blobLinks, contentId } from '../documents.ts';
import type { BlobLink } from '../documents.ts';

interface Parts {
  readonly store: Store;
  readonly blobs: Blobs;
}

/** How many links to a digest are looked through for one that the caller may read. */
const maxMountSources = 100;

/** The size of a blob that a repository has, or `undefined`. A link whose bytes are gone counts as absent: a push mends it. */
export async function linkedBlobSize(
  { store, blobs }: Parts,
  repository: string,
  digest: string,
): Promise<number | undefined> {
  const link = await store.get(blobLinks, contentId(repository, digest));
  return link && (await blobs.stat(digest))?.sizeBytes;
}

/** A blob that a repository has, opened for reading, or `undefined`. */
export async function openLinkedBlob(
  { store, blobs }: Parts,
  repository: string,
  digest: string,
): Promise<OpenBlob | undefined> {
  return (await store.get(blobLinks, contentId(repository, digest))) && (await blobs.open(digest));
}

/**
 * Notes that a repository has a blob, and leases it to whoever pushed it. Its bytes may still have to come.
 *
 * @returns the link as it was written; its `usedAt` is later than that of any write before.
 */
export async function linkBlob(
  { store }: Pick<Parts, 'store'>,
  repository: string,
  blob: { readonly digest: string; readonly sizeBytes: number },
): Promise<BlobLink> {
  const { digest, sizeBytes } = blob;
  const id = contentId(repository, digest);
  const nowMs = (await store.now()).getTime();
  return await upsert(store, blobLinks, id, (current) => {
    const usedAt = new Date(Math.max(nowMs, current ? current.usedAt.getTime() + 1 : 0));
    return { id, repository, digest, sizeBytes, usedAt };
  });
}

/** Some repository that has a blob and passes `readable`. */
export async function findSource(
  { store }: Pick<Parts, 'store'>,
  digest: string,
  readable: (repository: string) => boolean,
): Promise<string | undefined> {
  const links = await store.find(blobLinks, { index: 'byDigest', equals: { digest }, limit: maxMountSources });
  return links.find((link) => readable(link.repository))?.repository;
}
