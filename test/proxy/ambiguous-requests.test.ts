// Takes about 10 s
/**
 * No part of a request that two parsers could read differently reaches a backend, and every other request has exactly one reading
 * there. Each case arrives in one packet, in two, and byte by byte, in both forms of session URLs.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../fuzz/random.ts';
import { requestCases } from './cases.ts';
import type { RequestCase } from './cases.ts';
import { exchange } from './exchange.ts';
import { isStartOf, problemsOfAnswers, readingOf } from './readings.ts';
import type { Reading } from './readings.ts';
import { ProxyUnderTest } from './proxy-under-test.ts';
import type { RecordedSession } from './proxy-under-test.ts';

/** Time limit for cases that the proxy answers, or whose connection it closes. */
const answerMs = 20_000;
/** Time within which no answer comes to an incomplete request. */
const openMs = 500;

/** The number of concurrent connections, each with its own session. */
const lanes = 8;

let proxy: ProxyUnderTest;
const sessions: RecordedSession[] = [];

beforeAll(async () => {
  proxy = await ProxyUnderTest.open();
  for (let i = 0; i < lanes; i += 1) sessions.push(await proxy.session());
});
afterAll(() => proxy[Symbol.asyncDispose]());

/** How a request arrives. */
const arrivals: Readonly<Record<string, (bytes: string, random: Random) => string[]>> = {
  whole: (bytes) => [bytes],
  'in two': (bytes, random) => {
    const at = 1 + random.below(bytes.length - 1);
    return [bytes.slice(0, at), bytes.slice(at)];
  },
  'byte by byte': (bytes) => bytes.split(''),
};

describe.each(['path', 'host'] as const)('in the form %s', (form) => {
  test.each(Object.entries(arrivals))('requests that arrive %s', async (_name, split) => {
    const random = new Random(19);
    const left = [...requestCases];
    const wrong: object[] = [];
    const lane = async (session: RecordedSession) => {
      for (let each = left.pop(); each; each = left.pop()) {
        const found = await problemsOf(each, session, (bytes) => split(bytes, random));
        if (found.length > 0) wrong.push({ name: each.name, found });
      }
    };
    await Promise.all(sessions.map(lane));
    expect(wrong).toEqual([]);

    async function problemsOf(
      { bytes, readings, mayReject, closes = true }: RequestCase,
      session: RecordedSession,
      pieces: (bytes: string) => string[],
    ): Promise<string[]> {
      const { backendServer } = session;
      backendServer.clear();
      const sent = addressed(bytes, form, session);
      const quietMs = closes || readings.length > 0 ? answerMs : openMs;
      const options = { quietMs, ...(!closes && { isDone: isAnswered }) };
      const { received } = await exchange(proxy, pieces(sent), options);
      const seen = backendServer.requests.map(readingOf);
      const problems = backendServer.problems.map((problem) => `ambiguous bytes reach the backend: ${problem}`);
      const isAsExpected = JSON.stringify(seen) === JSON.stringify(readings);
      const isRejected =
        mayReject === true && isReadOrRejected(seen, readings) && /HTTP\/1\.1 [45]\d\d /.test(received);
      if (!isAsExpected && !isRejected) problems.push(`the backend reads ${JSON.stringify(seen)}`);
      return [...problems, ...problemsOfAnswers(received, backendServer.requests)];
    }
  });
});

function isAnswered(received: string): boolean {
  return /HTTP\/1\.1 [2-5]\d\d [^]*\r\n\r\n/.test(received);
}

/** The bytes with the session in place of `@`. In the host form, `Host: a` becomes the session's host. */
function addressed(bytes: string, form: 'path' | 'host', { token, host }: RecordedSession): string {
  if (form === 'path') return bytes.replaceAll('@/', `/${token}/`);
  return bytes.replaceAll('@/', '/').replaceAll(/\bHost: a\b/g, `Host: ${host}`);
}

/** The proxy may reject a request and close the connection, or continue with the next request. */
function isReadOrRejected(seen: readonly Reading[], readings: readonly Reading[]): boolean {
  return isStartOf(seen, readings) || isStartOf(seen, readings.slice(1));
}
