/** Which repository has which blob. */
import type { Blobs, OpenBlob } from '../../core/blobs/blobs.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import type { Caller } from '../context.ts';
import { blobLinks, contentId } from './documents.ts';
import type { BlobLink } from './documents.ts';
import { repositoriesOf } from './repositories.ts';

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

/** Some repository that has a blob and that the caller may mount from, one of its own account before all others. */
export async function findSource(
  { store }: Pick<Parts, 'store'>,
  digest: string,
  caller: Caller,
): Promise<string | undefined> {
  const ofDigest = { index: 'byDigest', equals: { digest }, limit: maxMountSources } as const;
  const own = await store.find(blobLinks, { ...ofDigest, range: repositoriesOf(caller.subject) });
  const links = own.length > 0 ? own : await store.find(blobLinks, ofDigest);
  return links.find(({ repository }) => caller.mayMountFrom(repository))?.repository;
}
