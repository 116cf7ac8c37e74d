import { cachedDataVersionTag } from 'node:v8';
import { expect, test } from 'vitest';
import { collectWithoutHelpers } from './heap.ts';

test('the compile cache stays valid when the collector has no helper threads', () => {
  const before = cachedDataVersionTag();
  collectWithoutHelpers();
  expect(cachedDataVersionTag()).toBe(before);
});
