import type { Store } from '../../core/store/store.ts';

type Write = 'insert' | 'update';

/** What a test does to a store. */
export interface Steering {
  /** The store's time, which stands still until a test moves it. */
  nowMs: number;
  /** How often documents of this collection were read. */
  readonly reads: Map<string, number>;
  /** Runs before the next write of this kind to this collection; rejecting fails the write. */
  before(write: Write, collection: string, run: () => Promise<void>): void;
}

/** A store whose time a test moves, and whose writes it can delay and fail. */
export function steeredStore(store: Store): { store: Store; steering: Steering } {
  const runs = new Map<string, () => Promise<void>>();
  const steering: Steering = {
    nowMs: Date.now(),
    reads: new Map(),
    before: (write, collection, run) => void runs.set(`${write} ${collection}`, run),
  };
  const runBefore = async (write: Write, collection: string) => {
    const name = `${write} ${collection}`;
    const run = runs.get(name);
    runs.delete(name);
    await run?.();
  };
  const steered: Pick<Store, 'now' | 'get' | Write> = {
    now: async () => new Date(steering.nowMs),
    get: async (collection, id) => {
      steering.reads.set(collection.name, (steering.reads.get(collection.name) ?? 0) + 1);
      return await store.get(collection, id);
    },
    insert: async (collection, document) => {
      await runBefore('insert', collection.name);
      await store.insert(collection, document);
    },
    update: async (collection, id, change) => {
      await runBefore('update', collection.name);
      return await store.update(collection, id, change);
    },
  };
  const proxy = new Proxy(store, {
    get: (target, property) => {
      if (Object.hasOwn(steered, property)) return Reflect.get(steered, property);
      const member: unknown = Reflect.get(target, property, target);
      return typeof member === 'function'
        ? (...args: unknown[]): unknown => Reflect.apply(member, target, args)
        : member;
    },
  });
  return { store: proxy, steering };
}
