import { expect, test } from 'vitest';
import { SharedQuestions } from './shared-questions.ts';

test('the same question is asked once in a turn, and again in the next one', async () => {
  const shared = new SharedQuestions<number>();
  let asked = 0;
  const ask = async (name: string) => await shared.ask(name, async () => (asked += 1));
  const [one, same, other] = await Promise.all([ask('one'), ask('one'), ask('other')]);
  expect(one).toBe(same);
  expect(other).not.toBe(one);
  expect(asked).toBe(2);
  expect(await ask('one')).toBe(3);
});

test('a question that was sent is not shared with those who ask later: what was written since must be in their answer', async () => {
  const shared = new SharedQuestions<string>();
  let stored = 'old';
  const first = Promise.withResolvers<void>();
  const slow = shared.ask('it', async () => {
    const read = stored;
    await first.promise;
    return read;
  });
  await new Promise((resolve) => setImmediate(resolve));
  stored = 'new';
  const later = await shared.ask('it', async () => stored);
  first.resolve();
  expect([await slow, later]).toStrictEqual(['old', 'new']);
});

test('a failure is everyone’s who asked, and nobody’s after', async () => {
  const shared = new SharedQuestions<number>();
  const fail = async () => await shared.ask('it', async () => await Promise.reject(new Error('away')));
  const both = await Promise.allSettled([fail(), fail()]);
  expect(both.map(({ status }) => status)).toStrictEqual(['rejected', 'rejected']);
  expect(await shared.ask('it', async () => 1)).toBe(1);
});
