/** Images: pushed manifests. Moving a tag adds an image and keeps the history. */
import { digestPattern } from '../contract/names.ts';
import type { Collection, Store } from '../core/store/store.ts';

export interface GitCommit {
  readonly hash?: string;
  readonly branch?: string;
  readonly message?: string;
  readonly repository?: string;
}

/** One manifest, under the tag it was pushed with. */
export interface Image {
  /** `<account>/<service>:<tag>@<digest>`. */
  readonly id: string;
  /** `<account>/<service>`. */
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
  /** When this tag was last pushed with this digest. */
  readonly uploadTime: Date;
  /** Config and layers of the image for this platform, compressed as stored. */
  readonly sizeBytes: number;
  /** `os/architecture`, where the config says so. */
  readonly platform?: string;
  readonly gitCommit?: GitCommit;
  /** When it was last chosen to run, not written more often than `chooseImage` needs. In the store's time. */
  readonly chosenAt?: Date;
}

/** An image that was pushed or chosen within this share of a lease is not written again: an hour of a day. */
const freshShare = 1 / 24;

export const images: Collection<Image, 'byTime' | 'byTag' | 'byDigest'> = {
  name: 'images',
  indexes: {
    byTime: ['repository', 'uploadTime'],
    byTag: ['repository', 'tag', 'uploadTime'],
    byDigest: ['repository', 'digest', 'uploadTime'],
  },
};

export function imageId(repository: string, tag: string, digest: string): string {
  return `${repository}:${tag}@${digest}`;
}

/** The most recent image with this tag, or the image with this digest. */
export async function findImage(store: Store, repository: string, reference: string): Promise<Image | undefined> {
  const [image] = digestPattern.test(reference)
    ? await store.find(images, {
        index: 'byDigest',
        equals: { repository, digest: reference },
        order: 'descending',
        limit: 1,
      })
    : await store.find(images, {
        index: 'byTag',
        equals: { repository, tag: reference },
        order: 'descending',
        limit: 1,
      });
  return image;
}

/** Whether an image was pushed or chosen at a time or later. */
export function isUsedSince({ uploadTime, chosenAt }: Image, time: Date): boolean {
  return uploadTime >= time || (chosenAt !== undefined && chosenAt >= time);
}

/**
 * Finds an image as `findImage` does, for a backend or an environment that will refer to it. Garbage collection keeps the image for
 * `leaseMs` after `now`, so that there is time to write the reference.
 */
export async function chooseImage(
  store: Store,
  { repository, reference }: { readonly repository: string; readonly reference: string },
  { now, leaseMs }: { readonly now: Date; readonly leaseMs: number },
): Promise<Image | undefined> {
  const freshSince = new Date(now.getTime() - leaseMs * freshShare);
  for (;;) {
    const image = await findImage(store, repository, reference);
    if (!image || isUsedSince(image, freshSince)) return image;
    const chosen = await store.update(images, image.id, (current) => ({ ...current, chosenAt: now }));
    // Deleted a moment ago: there may be an older image.
    if (chosen) return chosen;
  }
}
