import { StoreError } from './store.ts';
import type { Collection, Store, StoredDocument } from './store.ts';

/**
 * As `Store.update`, but where there is no document yet, the one that `change` makes of nothing is inserted.
 *
 * @returns the document as it stands now.
 */
export async function upsert<T extends StoredDocument>(
  store: Store,
  collection: Collection<T>,
  id: string,
  change: (current: T | undefined) => T,
): Promise<T> {
  for (;;) {
    const updated = await store.update(collection, id, change);
    if (updated) return updated;
    const created = change(undefined);
    try {
      await store.insert(collection, created);
      return created;
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'duplicate')) throw error;
    }
  }
}
