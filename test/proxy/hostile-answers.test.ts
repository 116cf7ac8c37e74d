// Takes about 10 s
/** Hostile answers of backends: the client receives an answer with one reading, and the next request receives its own answer. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../fuzz/random.ts';
import { malicious, scenarios } from '../fuzz/scenarios.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { converse } from './conversation.ts';
import type { Conversation } from './conversation.ts';
import { hostileAnswers } from './hostile-answers.ts';
import type { HostileAnswer } from './hostile-answers.ts';
import { echoed } from './recording-backend.ts';
import { ProxyUnderTest } from './proxy-under-test.ts';
import type { RecordedSession } from './proxy-under-test.ts';

/** The late part of an answer arrives between two requests. */
const lateMs = 5;
const limitMs = 10_000;

/** Time after which bytes that were sent with an answer, or with the end of a connection, have arrived. */
const arrivedMs = 20;

/** Time after which the backend closes the connection, which ends an answer without a length. */
const endMs = 150;

/** The number of concurrent sessions. */
const lanes = 8;

/** How an answer arrives: in one packet, or in two. */
const arrivals = { whole: () => 0, 'in two': (bytes: string, random: Random) => random.below(bytes.length + 1) };

/** The number of changed answers. */
const changedCount = Number(process.env['BERTH_TEST_CHANGED_ANSWERS'] ?? '200');

/** The seed of a failed run, in `BERTH_TEST_FUZZ_SEED`, repeats its answers. */
const seed = Number(process.env['BERTH_TEST_FUZZ_SEED'] ?? randomBytes(4).readUInt32BE());

let proxy: ProxyUnderTest;
const sessions: RecordedSession[] = [];

beforeAll(async () => {
  proxy = await ProxyUnderTest.open();
  for (let i = 0; i < lanes; i += 1) sessions.push(await proxy.session());
});
afterAll(() => proxy[Symbol.asyncDispose]());

test.each(['GET', 'HEAD', 'POST'])('an answer to %s affects no other request', async (method) => {
  const random = new Random(19);
  const each = Object.values(arrivals).flatMap((cutAt) =>
    hostileAnswers.map((answer) => ({ answer, cutAt: cutAt(answer.bytes, random) })),
  );
  expect(await problemsOfAll(method, each)).toEqual([]);
});

describe(`with BERTH_TEST_FUZZ_SEED=${seed}`, () => {
  test('an answer that is changed in a few places affects no other request', { timeout: 3_600_000 }, async () => {
    const random = new Random(seed);
    const changed = Array.from({ length: changedCount }, () => {
      const { name, answer: bytes } = malicious(random.pick(scenarios), random);
      return { answer: { name: `${name} ${JSON.stringify(bytes)}`, bytes }, cutAt: arrivals['in two'](bytes, random) };
    });
    expect(await problemsOfAll('GET', changed)).toEqual([]);
  });
});

interface Arrival {
  readonly answer: HostileAnswer;
  readonly cutAt: number;
}

async function problemsOfAll(method: string, all: readonly Arrival[]): Promise<object[]> {
  const left = [...all];
  const wrong: object[] = [];
  const lane = async (session: RecordedSession) => {
    for (let each = left.pop(); each; each = left.pop()) {
      const found = await problemsOf(method, session, each);
      if (found.length > 0) wrong.push({ name: each.answer.name, cutAt: each.cutAt, found });
    }
  };
  await Promise.all(sessions.map(lane));
  return wrong;
}

async function problemsOf(
  method: string,
  { token, backendServer }: RecordedSession,
  { answer, cutAt }: Arrival,
): Promise<string[]> {
  const sent = Promise.withResolvers<unknown>();
  const closed = Promise.withResolvers<unknown>();
  backendServer.clear();
  backendServer.answer = (request, socket) => {
    if (!request.startLine.includes(' /bad ')) return echoed(request, socket);
    socket.once('close', closed.resolve);
    systemClock.after(lateMs, () => {
      socket.write(answer.bytes.slice(cutAt), 'latin1');
      systemClock.after(lateMs, () => socket.write(answer.late ?? '', 'latin1', sent.resolve));
      systemClock.after(answer.closes === true ? 0 : endMs, () => socket.end());
    });
    return answer.bytes.slice(0, cutAt);
  };
  const requestTo = (path: string, by = 'GET') =>
    `${by} /${token}/${path} HTTP/1.1\r\nHost: a\r\n${by === 'POST' ? 'Content-Length: 3\r\n\r\nabc' : '\r\n'}`;
  const pause = async () => {
    await sent.promise;
    // The proxy closes the connection when it reads the late bytes, which may take long on a busy machine.
    if (answer.late !== undefined) await Promise.race([closed.promise, systemClock.sleep(limitMs)]);
    else await systemClock.sleep(arrivedMs);
  };
  const first = await converse(proxy.port, [requestTo('bad', method), requestTo('good')], { limitMs, pause });
  const other = await converse(proxy.port, [requestTo('other')], { limitMs });
  const problems = backendServer.problems.map((problem) => `ambiguous bytes reach the backend: ${problem}`);
  return [
    ...problems,
    ...problemsOfAnswers(first, { isCut: method !== 'HEAD' && answer.isCut === true }),
    ...problemsOfOther(other),
  ];
}

function problemsOfAnswers(conversation: Conversation, { isCut }: { isCut: boolean }): string[] {
  const { answers, partial, problem, isClosed } = conversation;
  if (problem !== undefined) return [`ambiguous bytes reach the client: ${problem}`];
  const [bad, good] = answers;
  const problems = [];
  if (!bad && !isClosed) problems.push(`the request has no answer: ${JSON.stringify(partial)}`);
  else if (!good && !isClosed) problems.push(`the next request has no answer: ${JSON.stringify(partial)}`);
  if (good && good.body !== 'GET /good HTTP/1.1 0')
    problems.push(`the next request is answered with ${good.startLine} ${good.body}`);
  if (answers.length > 2) problems.push('there are more answers than requests');
  const text = JSON.stringify([answers, partial]);
  if (/forged|mallory/.test(text)) problems.push(`forged headers reach the client: ${text.slice(0, 500)}`);
  if (isCut && bad?.startLine.startsWith('HTTP/1.1 200')) problems.push('a part of a body looks whole');
  return problems;
}

function problemsOfOther({ answers, problem, isClosed }: Conversation): string[] {
  const [answer] = answers;
  if (answer?.body === 'GET /other HTTP/1.1 0' && answers.length === 1 && !isClosed) return [];
  return [`a request on another connection is answered with ${problem ?? JSON.stringify(answers)}`];
}
