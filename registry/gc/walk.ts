import type { Store } from '../../core/store/store.ts';
import { images } from '../../model/image.ts';
import { blobLinks, manifests, tags } from '../content/documents.ts';

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
      ...(await store.find(images, { index: 'byTime', ...after })),
    ].map(({ repository }) => repository);
    const [next] = found.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    if (next === undefined) return;
    yield next;
    last = next;
  }
}
