/**
 * Empty stores on SQLite, for tests that do not test the store. Opening a store starts a thread and takes 60 ms of a core, so the
 * stores of a process are emptied after use and reused.
 */
import { rmSync } from 'node:fs';
import { OpenOperations } from '../../../core/async/open-operations.ts';
import { silentLog } from '../../../core/log/log.ts';
import type { AnyCollection } from '../../../core/store/query-plan.ts';
import { openSqliteStore } from '../../../core/store/sqlite/sqlite.ts';
import { StoreError } from '../../../core/store/store.ts';
import type { Store } from '../../../core/store/store.ts';
import { modelCollections } from '../../../model/collections.ts';
import { registryCollections } from '../../../registry/index.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { emptyStore } from './empty-store.ts';

/** The index that finds all documents of a collection without indexes. */
const everything = { byId: ['id'] };

const collections: readonly AnyCollection[] = [...modelCollections, ...registryCollections].map(
  ({ name, indexes }) => ({ name, indexes: Object.keys(indexes).length > 0 ? indexes : everything }),
);

/** Open, empty and unused stores. The end of the process closes them. */
const free: Store[] = [];

/**
 * Returns an empty store with the collections of the platform. After its disposal every call fails, like a call to a closed store.
 */
export async function openTestStore(): Promise<Store> {
  const store = free.pop() ?? (await openStore());
  return lend(store, async () => {
    await emptyStore(store, collections);
    free.push(store);
  });
}

async function openStore(): Promise<Store> {
  const folder = await temporaryFolder();
  process.once('exit', () => rmSync(folder.path, { recursive: true, force: true }));
  return await openSqliteStore({ folder: folder.path, collections, log: silentLog() });
}

/** A store for one test: its disposal waits for calls under way, and then releases the store. */
function lend(store: Store, release: () => Promise<void>): Store {
  const operations = new OpenOperations();
  let closed: Promise<void> | undefined;
  const close = async () => {
    await operations.settled();
    await release();
  };
  // A method that a test replaces, for example with a spy, is not replaced for the next test.
  const replaced = Object.create(store) as Store;
  return new Proxy(replaced, {
    get: (_target, name) => {
      if (name === Symbol.asyncDispose) return async () => await (closed ??= close());
      const member: unknown = Reflect.get(replaced, name, store);
      if (typeof member !== 'function') return member;
      // A scan calls `find` of the object on which it is called.
      if (name === 'scan') return member;
      return async (...args: unknown[]): Promise<unknown> => {
        if (closed) throw new StoreError('unavailable', 'The store is closed');
        return await operations.run(async () => await Reflect.apply(member, store, args));
      };
    },
  });
}
