import { MongoNetworkTimeoutError } from 'mongodb';
import { expect, test } from 'vitest';
import { Batches } from './batches.ts';
import type { Outcome } from './batches.ts';

/** A server that answers when the test calls `answer`, and records its requests. */
function manualServer(limits: { atOnce: number; size: number }) {
  const asked: { readonly requests: readonly number[]; readonly answer: (outcomes?: Outcome<number>[]) => void }[] = [];
  const batches = new Batches<number, number>(
    async (requests) =>
      await new Promise((resolve) => {
        const doubled = requests.map((request) => ({ answer: 2 * request }));
        asked.push({ requests, answer: (outcomes) => resolve(outcomes ?? doubled) });
      }),
    limits,
  );
  return { batches, asked };
}

const turn = async () => await new Promise((resolve) => setImmediate(resolve));

test('requests of one turn of the event loop form a batch, and each gets its own answer', async () => {
  const { batches, asked } = manualServer({ atOnce: 1, size: 10 });
  const answers = [1, 2, 3].map(async (request) => await batches.ask(request));
  await turn();
  expect(asked.map(({ requests }) => requests)).toStrictEqual([[1, 2, 3]]);
  asked[0]?.answer();
  expect(await Promise.all(answers)).toStrictEqual([2, 4, 6]);
});

test('the number of batches in progress is limited, and waiting requests form one batch', async () => {
  const { batches, asked } = manualServer({ atOnce: 2, size: 10 });
  const answers: Promise<number>[] = [];
  for (const request of [1, 2, 3, 4]) {
    answers.push(batches.ask(request));
    await turn();
  }
  expect(asked.map(({ requests }) => requests)).toStrictEqual([[1], [2]]);
  asked[0]?.answer();
  await answers[0];
  await turn();
  expect(asked.map(({ requests }) => requests)).toStrictEqual([[1], [2], [3, 4]]);
  for (const { answer } of asked) answer();
  expect(await Promise.all(answers)).toStrictEqual([2, 4, 6, 8]);
});

test('a batch is bounded', async () => {
  const { batches, asked } = manualServer({ atOnce: 1, size: 2 });
  const answers = [1, 2, 3, 4, 5].map(async (request) => await batches.ask(request));
  for (const size of [2, 2, 1]) {
    await turn();
    expect(asked.at(-1)?.requests).toHaveLength(size);
    asked.at(-1)?.answer();
    await turn();
  }
  expect(await Promise.all(answers)).toStrictEqual([2, 4, 6, 8, 10]);
});

test('a request fails alone; a batch fails all of its requests and no later ones', async () => {
  const { batches, asked } = manualServer({ atOnce: 1, size: 10 });
  const [first, second] = [batches.ask(1), batches.ask(2)];
  await turn();
  asked[0]?.answer([{ error: new Error('rejected') }, { answer: 4 }]);
  await expect(first).rejects.toThrow('rejected');
  expect(await second).toBe(4);

  let isUnavailable = true;
  const failing = new Batches<number, number>(
    async (requests) => {
      if (isUnavailable) throw new Error('unavailable');
      return requests.map((answer) => ({ answer }));
    },
    { atOnce: 1, size: 10 },
  );
  const both = await Promise.allSettled([failing.ask(1), failing.ask(2)]);
  expect(both.map(({ status }) => status)).toStrictEqual(['rejected', 'rejected']);
  isUnavailable = false;
  expect(await failing.ask(3)).toBe(3);
});

test('when no server answers in time, requests that wait fail at once, and later ones are sent', async () => {
  let sent = 0;
  let isUnavailable = true;
  const { promise: timeout, reject: timeOut } = Promise.withResolvers<never>();
  const batches = new Batches<number, number>(
    async (requests) => {
      sent += 1;
      return isUnavailable ? await timeout : requests.map((answer) => ({ answer }));
    },
    { atOnce: 1, size: 1 },
  );
  const asking = [1, 2, 3].map(async (request) => await batches.ask(request));
  await turn();
  timeOut(new MongoNetworkTimeoutError('timed out'));
  const ended = await Promise.allSettled(asking);
  expect(ended.map(({ status }) => status)).toStrictEqual(['rejected', 'rejected', 'rejected']);
  expect(sent).toBe(1);
  isUnavailable = false;
  expect(await batches.ask(4)).toBe(4);
});
