/**
 * Empty stores for tests that are not about the store: real ones, on SQLite. Opening one starts a thread and takes 60 ms of a core,
 * so the stores of a process are emptied after their use and lent again.
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

/** Finds all documents of a collection that has no index of its own. */
const everything = { byId: ['id'] };

const collections: readonly AnyCollection[] = [...modelCollections, ...registryCollections].map(
  ({ name, indexes }) => ({ name, indexes: Object.keys(indexes).length > 0 ? indexes : everything }),
);

/** Open, empty, and in no test's use. The end of the process closes them. */
const free: Store[] = [];

/** Returns an empty store with the collections of the platform. After its disposal it refuses every call, like a closed store. */
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

/** A store as one test sees it: its disposal waits for calls under way, and then gives the store back. */
function lend(store: Store, giveBack: () => Promise<void>): Store {
  const operations = new OpenOperations();
  let closed: Promise<void> | undefined;
  const close = async () => {
    await operations.settled();
    await giveBack();
  };
  // What a test replaces, such as a method that it watches, is not lent to the next one.
  const replaced = Object.create(store) as Store;
  return new Proxy(replaced, {
    get: (_target, name, proxy) => {
      if (name === Symbol.asyncDispose) return async () => await (closed ??= close());
      const member: unknown = Reflect.get(replaced, name, store);
      if (typeof member !== 'function') return member;
      // A scan consists of calls of `find`.
      if (name === 'scan') return member.bind(proxy);
      return async (...args: unknown[]): Promise<unknown> => {
        if (closed) throw new StoreError('unavailable', 'The store is closed');
        return await operations.run(async () => await Reflect.apply(member, store, args));
      };
    },
  });
}
