/**
 * Streams of requests that parsers may read differently, through the proxy, nginx and haproxy: what reaches a backend through the proxy
 * is what reaches it through both of the others, or through one of them if the other one refuses it.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../fuzz/random.ts';
import { exchange } from './exchange.ts';
import type { Listening } from './exchange.ts';
import { openJudge } from './judges.ts';
import type { Judge } from './judges.ts';
import { inSession, isPartOf, isStartOf, problemsOfAnswers, readingOf } from './readings.ts';
import type { Reading } from './readings.ts';
import type { RecordingBackend } from './recording-backend.ts';
import { piecesOf, requestStream } from './request-streams.ts';
import type { Message } from './strict-reader.ts';
import { Subject } from './subject.ts';
import type { RecordedSession } from './subject.ts';

/** How many streams. `BERTH_TEST_JUDGED_STREAMS=1000000` tests for an hour. */
const streamCount = Number(process.env['BERTH_TEST_JUDGED_STREAMS'] ?? '1000');

/** The seed of a failed run, in `BERTH_TEST_FUZZ_SEED`, repeats its streams. */
const seed = Number(process.env['BERTH_TEST_FUZZ_SEED'] ?? randomBytes(4).readUInt32BE());

/** Streams at a time, each with backends of its own. */
const laneCount = 8;

/** A proxy that waits for the rest of a request sends nothing. A difference is looked at again with more patience, as on a busy machine. */
const quietMs = [100, 1_500, 15_000];

/** A backend reads it at most this often until a run is given up. */
const maxFailures = 10;

const names = ['nginx', 'haproxy'] as const;

let subject: Subject;
let judges: Judge[] = [];
let missing: string[] = [];
const sessions: RecordedSession[] = [];

beforeAll(async () => {
  const opened = await Promise.all(names.map((name) => openJudge(name, laneCount)));
  judges = opened.filter((each) => 'lanes' in each);
  missing = opened.flatMap((each) => ('missing' in each ? each.missing : []));
  subject = await Subject.open();
  for (let i = 0; i < laneCount; i += 1) sessions.push(await subject.session());
});
afterAll(async () => {
  await subject?.[Symbol.asyncDispose]();
  for (const judge of judges) await judge[Symbol.asyncDispose]();
});

describe(`with BERTH_TEST_FUZZ_SEED=${seed}`, () => {
  test(
    'the proxy reads requests as nginx and haproxy do, or refuses them',
    { timeout: 3_600_000 * 12 },
    async (context) => {
      if (missing.length > 0) context.skip(`There is no judge: ${missing.join('; ')}`);
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

/** The differences that stay, however long each side may take. */
async function lastingDifferences(lane: number, pieces: readonly string[]): Promise<string[]> {
  let found: string[] = [];
  for (const waitMs of quietMs) {
    found = await differences(lane, pieces, waitMs);
    if (found.length === 0) return found;
  }
  return found;
}

let attempts = 0;

/** Sends a stream through the proxy and the judges, and returns how their readings differ. */
async function differences(lane: number, pieces: readonly string[], waitMs: number): Promise<string[]> {
  const session = sessions[lane] as RecordedSession;
  // Requests of an earlier attempt may still arrive.
  const attempt = `/${(attempts += 1)}`;
  const prefix = `/${session.token}${attempt}`;
  const addressed = pieces.map((piece) => piece.replaceAll('@', prefix));
  const ours = { to: { port: subject.port }, backend: session.backendServer };
  const theirs = judges.map(({ lanes }) => {
    const { path, backend } = lanes[lane] as Judge['lanes'][number];
    return { to: { path }, backend };
  });
  const [own, ...judged] = await Promise.all(
    [ours, ...theirs].map(
      async (each, i) => await through(each, addressed, { prefix: i === 0 ? attempt : prefix, waitMs }),
    ),
  );
  if (!own) return [];
  const isWithin = own.received.includes('HTTP/1.1 417 ') ? isPartOf : isStartOf;
  const isDifferent = judged.some((each) => !isWithin(own.readings, each.readings) && !isRefusal(each, own.readings));
  const isRefused = judged.every((each) => !isWithin(own.readings, each.readings));
  const problems = [...own.problems, ...problemsOfAnswers(own.received, own.requests, attempt)];
  if (!isDifferent && !isRefused && problems.length === 0) return [];
  const said = (readings: readonly Reading[], answer: string) => `${JSON.stringify(readings)} (${statuses(answer)})`;
  return [
    ...problems,
    `Berth: ${said(own.readings, own.received)}`,
    ...judged.map((each, i) => `${judges[i]?.name}: ${said(each.readings, each.received)} ${each.problems.join()}`),
  ];
}

/**
 * Whether a judge agrees as far as it reads, and refuses the rest. Each of them refuses requests that the other one accepts, such as a tab
 * after a length, so it takes both.
 */
function isRefusal({ readings, received, isClosed }: Heard, own: readonly Reading[]): boolean {
  // The answer of a judge that closes the connection at once may get lost.
  return isStartOf(readings, own) && (isClosed || /HTTP\/1\.1 [45]\d\d /.test(received));
}

interface Heard {
  /** Of this attempt. */
  readonly requests: readonly Message[];
  readonly readings: readonly Reading[];
  readonly problems: readonly string[];
  readonly received: string;
  /** Whether the proxy has closed the connection by itself. */
  readonly isClosed: boolean;
}

async function through(
  { to, backend }: { to: Listening; backend: RecordingBackend },
  pieces: readonly string[],
  { prefix, waitMs }: { prefix: string; waitMs: number },
): Promise<Heard> {
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
