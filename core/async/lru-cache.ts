import { LRUCache } from 'lru-cache';

/**
 * Keeps the most recently used values of at most `max` keys, and takes memory only for those that it has. With an option `max` of its
 * own, `LRUCache` takes the memory for all of them when it is made: 5 MB, and 10 ms, for 200,000.
 */
export function newLruCache<V extends object | string | number>(max: number): LRUCache<string, V> {
  return new LRUCache({ maxSize: max, sizeCalculation: () => 1 });
}
