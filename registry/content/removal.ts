/**
 * Deleting manifests and their names. Images and tags are deleted before the manifest that they point to: an image without its
 * manifest could be spawned. After a crash in between, the same deletion deletes the rest.
 */
import type { Store } from '../../core/store/store.ts';
import { images } from '../../model/image.ts';
import type { Image } from '../../model/image.ts';
import { contentId, manifests, ofRepository, tagId, tags } from './documents.ts';
import type { StoredManifest, StoredTag } from './documents.ts';

/** Which documents may be deleted, by their state at the time of deletion. Default: all. */
interface Conditions {
  readonly image?: (image: Image) => boolean;
  readonly tag?: (tag: StoredTag) => boolean;
  readonly manifest?: (manifest: StoredManifest) => boolean;
}

/**
 * Deletes a manifest with the images and tags that point to it. If one of these stays, the manifest stays too.
 *
 * @returns whether the manifest was deleted.
 */
export async function removeManifest(
  store: Store,
  { repository, digest }: { readonly repository: string; readonly digest: string },
  when: Conditions = {},
): Promise<boolean> {
  const ofDigest = { index: 'byDigest', equals: { repository, digest } } as const;
  let isNamed = false;
  for await (const { id } of store.scan(images, ofDigest)) {
    const isDeleted = await store.delete(images, id, when.image);
    isNamed ||= !isDeleted && (await store.get(images, id)) !== undefined;
  }
  for await (const { id } of store.scan(tags, ofDigest)) {
    // A tag that was moved meanwhile points to another manifest.
    const isDeleted = await store.delete(tags, id, (tag) => tag.digest === digest && (when.tag?.(tag) ?? true));
    isNamed ||= !isDeleted && (await store.get(tags, id))?.digest === digest;
  }
  return !isNamed && (await store.delete(manifests, contentId(repository, digest), when.manifest));
}

/** Deletes a tag and its images; the manifests stay. @returns whether the tag existed. */
export async function removeTag(store: Store, repository: string, tag: string): Promise<boolean> {
  await removeImages(store, repository, tag);
  const existed = await store.delete(tags, tagId(repository, tag));
  // A push may have recorded its image before its tag was deleted. One that records it later finds no tag, and deletes it.
  await removeImages(store, repository, tag);
  return existed;
}

async function removeImages(store: Store, repository: string, tag: string): Promise<void> {
  for await (const { id } of store.scan(images, { index: 'byTag', equals: { repository, tag } })) {
    await store.delete(images, id);
  }
}

/** Deletes all images and tags of a repository that were pushed before a time. */
export async function removeNames(store: Store, repository: string, before: Date): Promise<void> {
  const older = { index: 'byTime', equals: { repository }, range: { before } } as const;
  for await (const { id } of store.scan(images, older)) {
    await store.delete(images, id, ({ uploadTime }) => uploadTime < before);
  }
  for await (const { id } of store.scan(tags, ofRepository(repository))) {
    await store.delete(tags, id, ({ pushedAt }) => pushedAt < before);
  }
}
