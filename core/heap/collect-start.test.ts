import { once } from 'node:events';
import { cachedDataVersionTag } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { collectStartupGarbage } from './collect-start.mjs';

test('compiled code that was cached before a collection is still valid after it', () => {
  const before = cachedDataVersionTag();
  collectStartupGarbage();
  expect(cachedDataVersionTag()).toBe(before);
});

test('threads can collect at the same time', async () => {
  const source = `
    import { collectStartupGarbage } from '${new URL('collect-start.mjs', import.meta.url).href}';
    for (let count = 0; count < 10; count++) collectStartupGarbage();
  `;
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const threads = Array.from({ length: 4 }, () => new Worker(url));
  // An error in a thread rejects.
  const ends = await Promise.all(threads.map((thread) => once(thread, 'exit')));
  expect(ends).toEqual(threads.map(() => [0]));
});
