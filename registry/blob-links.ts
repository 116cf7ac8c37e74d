/** Which repository has which blob. */
import type { Blobs, OpenBlob } from '../core/blobs/blobs.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { upsert } from '../core/store/upsert.ts';
import { blobLinks, contentId } from './documents.ts';

interface Parts {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
}

/** A client that was told of a blob builds on it soon: noting it once in this time is exact enough. */
const useNotedEveryMs = 3_600_000;

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

/** Makes a published blob visible in a repository. */
export async function linkBlob(
  { store, clock }: Parts,
  repository: string,
  blob: { readonly digest: string; readonly sizeBytes: number },
): Promise<void> {
  const id = contentId(repository, blob.digest);
  const usedAt = clock.now();
  const { digest, sizeBytes } = blob;
  await upsert(store, blobLinks, id, () => ({ id, repository, digest, sizeBytes, usedAt }));
}

/** Notes that a client was told that a blob is here, so that it is not collected before the client has built on it. */
export async function noteUse({ store, clock }: Parts, repository: string, digest: string): Promise<void> {
  const now = clock.now();
  await store.update(blobLinks, contentId(repository, digest), (link) =>
    now.getTime() - link.usedAt.getTime() < useNotedEveryMs ? link : { ...link, usedAt: now },
  );
}

/** Some repository that has a blob and passes `readable`. */
export async function findSource(
  { store }: Parts,
  digest: string,
  readable: (repository: string) => boolean,
): Promise<string | undefined> {
  const links = await store.find(blobLinks, { index: 'byDigest', equals: { digest }, limit: maxMountSources });
  return links.find((link) => readable(link.repository))?.repository;
}
