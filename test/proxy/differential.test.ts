/**
 * Sends streams of requests that parsers may read differently through the proxy, nginx and haproxy. A backend of the proxy must
 * receive the same requests as behind both references, or behind one of them if the other rejects the request.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../fuzz/random.ts';
import { exchange } from './exchange.ts';
import type { Listening } from './exchange.ts';
import { openReferenceProxy } from './reference-proxies.ts';
import type { ReferenceProxy } from './reference-proxies.ts';
import { inSession, isStartOf, leavingOut, problemsOfAnswers, readingOf } from './readings.ts';
import type { Reading } from './readings.ts';
import type { RecordingBackend } from './recording-backend.ts';
import { piecesOf, requestStream } from './request-streams.ts';
import type { Message } from './strict-reader.ts';
import { ProxyUnderTest } from './proxy-under-test.ts';
import type { RecordedSession } from './proxy-under-test.ts';

/** The number of streams. `BERTH_TEST_JUDGED_STREAMS=1000000` tests for an hour. */
const streamCount = Number(process.env['BERTH_TEST_JUDGED_STREAMS'] ?? '1000');

/** The seed of a failed run, in `BERTH_TEST_FUZZ_SEED`, repeats its streams. */
const seed = Number(process.env['BERTH_TEST_FUZZ_SEED'] ?? randomBytes(4).readUInt32BE());

/** The number of concurrent streams, each with its own backends. */
const laneCount = 8;

/**
 * Times after which a silent proxy counts as waiting for more bytes. A difference is tested again with a longer time, for busy
 * machines.
 */
const quietMs = [100, 1_500, 15_000];

/** The number of failures after which a run ends. */
const maxFailures = 10;

const names = ['nginx', 'haproxy'] as const;

let proxy: ProxyUnderTest;
let references: ReferenceProxy[] = [];
let missing: string[] = [];
const sessions: RecordedSession[] = [];

beforeAll(async () => {
  const opened = await Promise.all(names.map((name) => openReferenceProxy(name, laneCount)));
  references = opened.filter((each) => 'lanes' in each);
  missing = opened.flatMap((each) => ('missing' in each ? each.missing : []));
  proxy = await ProxyUnderTest.open();
  for (let i = 0; i < laneCount; i += 1) sessions.push(await proxy.session());
});
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
  for (const reference of references) await reference[Symbol.asyncDispose]();
});

describe(`with BERTH_TEST_FUZZ_SEED=${seed}`, () => {
  test(
    'the proxy reads requests as nginx and haproxy do, or rejects them',
    { timeout: 3_600_000 * 12 },
    async (context) => {
      if (missing.length > 0) context.skip(`A reference proxy is missing: ${missing.join('; ')}`);
      const failures: string[] = [];
      let index = 0;
      let forwarded = 0;
      const run = async (lane: number) => {
        while (index < streamCount && failures.length < maxFailures) {
          const random = new Random(seed + index++);
          const bytes = requestStream(random);
          const pieces = piecesOf(bytes, random);
          const found = await lastingDifferences(lane, pieces);
          if (found.length > 0) failures.push([JSON.stringify(bytes), ...found].join('\n  '));
          else forwarded += sessions[lane]?.backendServer.requests.length ?? 0;
        }
      };
      await Promise.all(sessions.map(async (_session, lane) => await run(lane)));
      expect(failures).toEqual([]);
      await context.annotate(`${forwarded} requests reached a backend`);
      expect(forwarded).toBeGreaterThan(streamCount / 2);
    },
  );
});

/** The differences that remain with the longest time. */
async function lastingDifferences(lane: number, pieces: readonly string[]): Promise<string[]> {
  let found: string[] = [];
  for (const waitMs of quietMs) {
    found = await differences(lane, pieces, waitMs);
    if (found.length === 0) return found;
  }
  return found;
}

let attempts = 0;

/** Sends a stream through the proxy and the references, and returns how their readings differ. */
async function differences(lane: number, pieces: readonly string[], waitMs: number): Promise<string[]> {
  const session = sessions[lane] as RecordedSession;
  // Requests of an earlier attempt may still arrive.
  const attempt = `/${(attempts += 1)}`;
  const prefix = `/${session.token}${attempt}`;
  const addressed = pieces.map((piece) => piece.replaceAll('@', prefix));
  const ours = { to: { port: proxy.port }, backend: session.backendServer };
  const theirs = references.map(({ lanes }) => {
    const { path, backend } = lanes[lane] as ReferenceProxy['lanes'][number];
    return { to: { path }, backend };
  });
  const [own, ...others] = await Promise.all(
    [ours, ...theirs].map(
      async (each, i) => await through(each, addressed, { prefix: i === 0 ? attempt : prefix, waitMs }),
    ),
  );
  if (!own) return [];
  const isWithin = (each: Outcome) => expected(each, own).some((readings) => isStartOf(own.readings, readings));
  const isDifferent = others.some((each) => !isWithin(each) && !isRejection(each, own));
  // If the references reject different requests, neither shows whether the requests after them are valid.
  const isSameRejection = new Set(others.map(({ readings }) => readings.length)).size === 1;
  const isRejected = !others.some(isWithin) && isSameRejection;
  const problems = [...own.problems, ...problemsOfAnswers(own.received, own.requests, attempt)];
  if (!isDifferent && !isRejected && problems.length === 0) return [];
  const summary = (readings: readonly Reading[], answer: string) => `${JSON.stringify(readings)} (${statuses(answer)})`;
  return [
    ...problems,
    `Berth: ${summary(own.readings, own.received)}`,
    ...others.map(
      (each, i) => `${references[i]?.name}: ${summary(each.readings, each.received)} ${each.problems.join()}`,
    ),
  ];
}

/**
 * What the backend of the proxy should read, by a reference. The proxy rejects requests with an unknown expectation (417) and
 * continues after them; the references forward these requests.
 */
function expected(reference: Outcome, own: Outcome): (readonly Reading[])[] {
  return leavingOut(reference.readings, own.received.split('HTTP/1.1 417 ').length - 1);
}

/**
 * Whether a reference agrees up to a request that it rejects. Each reference rejects requests that the other accepts, such as a tab
 * after a length, so both are needed.
 */
function isRejection(reference: Outcome, own: Outcome): boolean {
  // The answer of a proxy that closes the connection at once may be lost.
  const rejects = reference.isClosed || /HTTP\/1\.1 [45]\d\d /.test(reference.received);
  return rejects && expected(reference, own).some((readings) => isStartOf(readings, own.readings));
}

interface Outcome {
  /** The requests of this attempt. */
  readonly requests: readonly Message[];
  readonly readings: readonly Reading[];
  readonly problems: readonly string[];
  readonly received: string;
  /** Whether the proxy has closed the connection. */
  readonly isClosed: boolean;
}

async function through(
  { to, backend }: { to: Listening; backend: RecordingBackend },
  pieces: readonly string[],
  { prefix, waitMs }: { prefix: string; waitMs: number },
): Promise<Outcome> {
  backend.clear();
  const isDone = (received: string) => received.includes('/last HTTP/1.1 0');
  const { received, isClosed } = await exchange(to, pieces, { quietMs: waitMs, isDone });
  const requests = backend.requests.filter((request) => inSession([readingOf(request)], prefix).length > 0);
  return {
    requests,
    readings: inSession(requests.map(readingOf), prefix),
    isClosed,
    problems: backend.problems.map((problem) => `ambiguous bytes reach the backend: ${problem}`),
    received,
  };
}

function statuses(received: string): string {
  return Array.from(received.matchAll(/HTTP\/1\.1 (\d{3})/g), ([, status]) => status).join(' ');
}
