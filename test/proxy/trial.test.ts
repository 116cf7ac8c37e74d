// Takes about 10 s
/**
 * The trial of the proxy: of a request that two parsers could read differently, nothing reaches a backend, and every other request has
 * exactly one reading there. Each case arrives whole, cut in two, and byte by byte, in both forms of session URLs.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../fuzz/random.ts';
import { trialCases } from './cases.ts';
import type { TrialCase } from './cases.ts';
import { exchange } from './exchange.ts';
import { isStartOf, problemsOfAnswers, readingOf } from './readings.ts';
import type { Reading } from './readings.ts';
import { Subject } from './subject.ts';
import type { RecordedSession } from './subject.ts';

/** The proxy closes the connection of most cases, or answers. It waits for the rest of the others, and nothing comes within this time. */
const answerMs = 20_000;
const openMs = 500;

/** Connections at a time: a session each. */
const lanes = 8;

let subject: Subject;
const sessions: RecordedSession[] = [];

beforeAll(async () => {
  subject = await Subject.open();
  for (let i = 0; i < lanes; i += 1) sessions.push(await subject.session());
});
afterAll(() => subject[Symbol.asyncDispose]());

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
    const left = [...trialCases];
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
      { bytes, readings, mayRefuse, closes = true }: TrialCase,
      session: RecordedSession,
      pieces: (bytes: string) => string[],
    ): Promise<string[]> {
      const { backendServer } = session;
      backendServer.clear();
      const sent = addressed(bytes, form, session);
      const quietMs = closes || readings.length > 0 ? answerMs : openMs;
      const options = { quietMs, ...(!closes && { isDone: isAnswered }) };
      const { received } = await exchange(subject, pieces(sent), options);
      const seen = backendServer.requests.map(readingOf);
      const problems = backendServer.problems.map((problem) => `ambiguous bytes reach the backend: ${problem}`);
      const isAsExpected = JSON.stringify(seen) === JSON.stringify(readings);
      const isRefused = mayRefuse === true && isReadOrRefused(seen, readings) && /HTTP\/1\.1 [45]\d\d /.test(received);
      if (!isAsExpected && !isRefused) problems.push(`the backend reads ${JSON.stringify(seen)}`);
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

/** The proxy may refuse a request and close the connection, or go on with the next one. */
function isReadOrRefused(seen: readonly Reading[], readings: readonly Reading[]): boolean {
  return isStartOf(seen, readings) || isStartOf(seen, readings.slice(1));
}
