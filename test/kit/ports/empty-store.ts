import { indexOf } from '../../../core/store/query-plan.ts';
import type { AnyCollection } from '../../../core/store/query-plan.ts';
import type { Collection, Store, StoredDocument } from '../../../core/store/store.ts';

/** Deletes all documents of these collections, each of which has an index of all documents. */
export async function emptyStore(store: Store, collections: readonly AnyCollection[]): Promise<void> {
  await Promise.all(
    collections.map(async (declared) => {
      const collection = declared as Collection<StoredDocument>;
      const [index = ''] = Object.entries(declared.indexes).find(([, each]) => !indexOf(each).omitsNull) ?? [];
      const documents = await store.find(collection, { index });
      await Promise.all(documents.map(async ({ id }) => await store.delete(collection, id)));
    }),
  );
}
