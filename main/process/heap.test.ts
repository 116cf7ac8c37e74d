import { cachedDataVersionTag } from 'node:v8';
import { expect, test } from 'vitest';
import { collectWithoutHelpers } from './heap.ts';

test('compiled code that was kept before is still valid when the collector has no helpers', () => {
  const before = cachedDataVersionTag();
  collectWithoutHelpers();
  expect(cachedDataVersionTag()).toBe(before);
});
