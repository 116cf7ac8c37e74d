import { expect, test } from 'vitest';
import { CheckQueue } from './check-queue.ts';

test('refuses checks that find no room, those with more room later, and has room again when checks have ended', async () => {
  const queue = new CheckQueue();
  const { promise, resolve } = Promise.withResolvers<string>();
  const fails = Promise.withResolvers<string>();
  const running = [queue.run(2, async () => await promise), queue.run(2, async () => await fails.promise)];
  const refusal = { code: 'TooManyRequests', retryAfterSeconds: 5 };
  const check = async () => 'checked';
  await expect(queue.run(2, check)).rejects.toMatchObject(refusal);
  expect(await queue.run(3, check)).toBe('checked');
  resolve('done');
  expect(await running[0]).toBe('done');
  expect(await queue.run(2, check)).toBe('checked');
  fails.reject(new Error('wrong'));
  await expect(running[1]).rejects.toThrow('wrong');
  expect(await queue.run(1, check)).toBe('checked');
});
