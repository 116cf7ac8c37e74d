import { expect, test } from 'vitest';
import { CheckQueue } from './check-queue.ts';

test('rejects a check at its capacity, accepts one with a higher capacity, and accepts checks again when others have ended', async () => {
  const queue = new CheckQueue();
  const { promise, resolve } = Promise.withResolvers<string>();
  const fails = Promise.withResolvers<string>();
  const running = [queue.run(2, async () => await promise), queue.run(2, async () => await fails.promise)];
  const rejection = { code: 'TooManyRequests', retryAfterSeconds: 5 };
  const check = async () => 'checked';
  await expect(queue.run(2, check)).rejects.toMatchObject(rejection);
  expect(await queue.run(3, check)).toBe('checked');
  resolve('done');
  expect(await running[0]).toBe('done');
  expect(await queue.run(2, check)).toBe('checked');
  fails.reject(new Error('wrong'));
  await expect(running[1]).rejects.toThrow('wrong');
  expect(await queue.run(1, check)).toBe('checked');
});
