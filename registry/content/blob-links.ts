/** Which repository has which blob: without a link, a blob is invisible in a repository. */
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

/** How many links to a digest are searched for a repository from which the caller may mount. */
const maxMountSources = 100;

/** The size of a repository's blob, or `undefined`. A link without bytes counts as absent: a push repairs it. */
export async function linkedBlobSize(
  { store, blobs }: Parts,
  repository: string,
  digest: string,
): Promise<number | undefined> {
  const link = await store.get(blobLinks, contentId(repository, digest));
  return link && (await blobs.stat(digest))?.sizeBytes;
}

/** Opens a repository's blob for reading. `undefined` if the repository has no such blob. */
export async function openLinkedBlob(
  { store, blobs }: Parts,
  repository: string,
  digest: string,
): Promise<OpenBlob | undefined> {
  return (await store.get(blobLinks, contentId(repository, digest))) && (await blobs.open(digest));
}

/**
 * Links a blob to a repository and begins its lease. The bytes may be published later.
 *
 * @returns the written link; its `usedAt` is later than in any earlier write.
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

/** Finds a repository that has a blob and from which the caller may mount, preferably in the caller's account. */
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
