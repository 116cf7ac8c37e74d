import { cachedDataVersionTag } from 'node:v8';
import { expect, test } from 'vitest';
import { collectStart } from './collect-start.mjs';

test('compiled code that was kept before is still valid after it', () => {
  const before = cachedDataVersionTag();
  collectStart();
  expect(cachedDataVersionTag()).toBe(before);
});
