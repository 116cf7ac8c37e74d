/** Going through what is stored, a few documents at a time. */
import type { Store } from '../../core/store/store.ts';
import { images } from '../../model/image.ts';
import { blobLinks, deletions, manifests, tags } from '../documents.ts';
import type { BlobLink, Deletion, StoredManifest, StoredTag } from '../documents.ts';

/** Few at a time, since manifests come with up to 4 MiB each. */
const manifestBatch = 16;

const batch = 500;

/**
 * Every repository that has anything, whether or not it still has a service, in order. Each index is skipped through from one
 * repository to the next.
 */
export async function* repositories(store: Store): AsyncGenerator<string, void, undefined> {
  let last: string | undefined;
  for (;;) {
    const after = { ...(last !== undefined && { range: { after: last } }), limit: 1 };
    const found = [
      ...(await store.find(manifests, { index: 'byRepository', ...after })),
      ...(await store.find(tags, { index: 'byRepository', ...after })),
      ...(await store.find(blobLinks, { index: 'byRepository', ...after })),
      ...(await store.find(deletions, { index: 'byRepository', ...after })),
      ...(await store.find(images, { index: 'byTime', ...after })),
    ].map(({ repository }) => repository);
    const [next] = found.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    if (next === undefined) return;
    yield next;
    last = next;
  }
}

export async function* manifestsOf(store: Store, repository: string): AsyncGenerator<StoredManifest, void, undefined> {
  yield* inPages(manifestBatch, async (last) => {
    const range = last && { range: { after: last.digest } };
    return await store.find(manifests, {
      index: 'byRepository',
      equals: { repository },
      limit: manifestBatch,
      ...range,
    });
  });
}

export async function* linksOf(store: Store, repository: string): AsyncGenerator<BlobLink, void, undefined> {
  yield* inPages(batch, async (last) => {
    const range = last && { range: { after: last.digest } };
    return await store.find(blobLinks, { index: 'byRepository', equals: { repository }, limit: batch, ...range });
  });
}

export async function* deletionsOf(store: Store, repository: string): AsyncGenerator<Deletion, void, undefined> {
  yield* inPages(batch, async (last) => {
    const range = last && { range: { after: last.digest } };
    return await store.find(deletions, { index: 'byRepository', equals: { repository }, limit: batch, ...range });
  });
}

export async function* tagsOf(store: Store, repository: string): AsyncGenerator<StoredTag, void, undefined> {
  yield* inPages(batch, async (last) => {
    const range = last && { range: { after: last.tag } };
    return await store.find(tags, { index: 'byRepository', equals: { repository }, limit: batch, ...range });
  });
}

/** `page` finds what comes after the last document of the page before. */
async function* inPages<T>(
  limit: number,
  page: (last: T | undefined) => Promise<T[]>,
): AsyncGenerator<T, void, undefined> {
  let found: T[];
  let last: T | undefined;
  do {
    found = await page(last);
    yield* found;
    last = found.at(-1);
  } while (found.length === limit);
}
