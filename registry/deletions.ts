/**
 * What somebody took away by its digest. Images that need it stay as they are, by the specification, and cannot be pulled any
 * more: whoever checks what is stored must not take that for a loss.
 */
import type { Store } from '../core/store/store.ts';
import { upsert } from '../core/store/upsert.ts';
import { contentId, deletions } from './documents.ts';
import type { Deletion } from './documents.ts';

interface Content {
  readonly repository: string;
  readonly digest: string;
}

/** To be called before content that is here goes, so that a crash in between cannot make it look lost. */
export async function noteDeletion(store: Store, { repository, digest }: Content): Promise<void> {
  const deletedAt = await store.now();
  const id = contentId(repository, digest);
  await upsert(store, deletions, id, () => ({ id, repository, digest, deletedAt }));
}

/** When somebody took away content that is missing, or `undefined`. */
export async function findDeletion(store: Store, { repository, digest }: Content): Promise<Deletion | undefined> {
  return await store.get(deletions, contentId(repository, digest));
}
