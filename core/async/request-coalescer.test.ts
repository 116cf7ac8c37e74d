import { expect, test } from 'vitest';
import { RequestCoalescer } from './request-coalescer.ts';

test('sends equal requests of one turn once, and a new request in the next turn', async () => {
  const coalescer = new RequestCoalescer<number>();
  let sent = 0;
  const run = async (key: string) => await coalescer.run(key, async () => (sent += 1));
  const [one, same, other] = await Promise.all([run('one'), run('one'), run('other')]);
  expect(one).toBe(same);
  expect(other).not.toBe(one);
  expect(sent).toBe(2);
  expect(await run('one')).toBe(3);
});

test('does not share a request with callers that come after it was sent: their result must contain later writes', async () => {
  const coalescer = new RequestCoalescer<string>();
  let stored = 'old';
  const first = Promise.withResolvers<void>();
  const slow = coalescer.run('it', async () => {
    const read = stored;
    await first.promise;
    return read;
  });
  await new Promise((resolve) => setImmediate(resolve));
  stored = 'new';
  const later = await coalescer.run('it', async () => stored);
  first.resolve();
  expect([await slow, later]).toStrictEqual(['old', 'new']);
});

test('rejects for all callers of a request, and for none after it', async () => {
  const coalescer = new RequestCoalescer<number>();
  const fail = async () => await coalescer.run('it', async () => await Promise.reject(new Error('unreachable')));
  const both = await Promise.allSettled([fail(), fail()]);
  expect(both.map(({ status }) => status)).toStrictEqual(['rejected', 'rejected']);
  expect(await coalescer.run('it', async () => 1)).toBe(1);
});
