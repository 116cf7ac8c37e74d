import { expect, test } from 'vitest';
import { newLruCache } from './lru-cache.ts';

test('keeps the most recently used values, up to its limit', () => {
  const cache = newLruCache<number>(3);
  for (let i = 0; i < 3; i += 1) cache.set(`${i}`, i);
  cache.get('0');
  cache.set('3', 3);
  cache.set('3', 4);
  expect(['0', '1', '2', '3'].map((key) => cache.get(key))).toEqual([0, undefined, 2, 4]);
});
