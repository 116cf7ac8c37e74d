import { StoreError } from './store.ts';
import type { Collection, Store, StoredDocument } from './store.ts';

/**
 * Updates a document as `Store.update` does. If there is none, inserts the result of `change(undefined)`.
 *
 * @returns the current document
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
    if (await insertIfAbsent(store, collection, created)) return created;
  }
}

/** Inserts a document, unless a document with its ID exists. Returns whether it was inserted. */
export async function insertIfAbsent<T extends StoredDocument>(
  store: Store,
  collection: Collection<T>,
  document: NoInfer<T>,
): Promise<boolean> {
  try {
    await store.insert(collection, document);
    return true;
  } catch (error) {
    if (error instanceof StoreError && error.code === 'duplicate') return false;
    throw error;
  }
}
