import { StoreError } from '../../core/store/store.ts';
import type { Store } from '../../core/store/store.ts';

export interface Cut {
  isOff: boolean;
  /** Only what is asked of this collection fails. */
  collection?: string;
}

/**
 * A store that a test can put out of reach for the worker.
 *
 * @param isShared - whether it says that other processes share it; default: as the store is
 */
export function cutStore(store: Store, { isShared = store.isShared } = {}): { store: Store; cut: Cut } {
  const cut: Cut = { isOff: false };
  const isCut = (asked: unknown) =>
    cut.isOff && (cut.collection === undefined || (asked as { name?: string } | undefined)?.name === cut.collection);
  const proxy = new Proxy(store, {
    get(target, property) {
      if (property === 'isShared') return isShared;
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown =>
        isCut(args[0])
          ? Promise.reject(new StoreError('unavailable', 'The store cannot be reached'))
          : Reflect.apply(member, target, args);
    },
  });
  return { store: proxy, cut };
}
