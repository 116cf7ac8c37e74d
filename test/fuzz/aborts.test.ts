// Takes about 75 s
/**
 * Clients and backends that leave at every byte of every exchange, and backends whose answers were tampered with: the process
 * lives, sessions beside them stay open, and nothing of what was broken off stays counted.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import type { Image } from '../../setup/image.ts';
import { sampleImage } from '../../setup/sample-image.ts';
import { runBerth } from '../kit/platform/berth-command.ts';
import { terminate } from '../kit/platform/api-client.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { pushTestImage } from '../kit/engines/images.ts';
import { Fixture } from '../stories/fixture.ts';
import { play, Witness } from './client.ts';
import type { Cut } from './client.ts';
import { exchanges, malicious, requestBytes } from './exchanges.ts';
import { leavings } from './plan.ts';
import { Random } from './random.ts';

/** Each case is played once, and all again while this lasts; `BERTH_TEST_FUZZ_SECONDS=3600` looks longer. */
const fuzzMs = Number(process.env['BERTH_TEST_FUZZ_SECONDS'] ?? '60') * 1000;

/** The seed of a run that failed, in `BERTH_TEST_FUZZ_SEED`, does the same again in the same order. */
const seed = Number(process.env['BERTH_TEST_FUZZ_SEED'] ?? randomBytes(4).readUInt32BE());

/** Enough that they meet each other, and that two cores have time to spare for those beside them. */
const players = 8;

/** Small enough that a few leaked reservations leave no room for a last push of half of it. */
const spareBytes = 64 * 1024;
const chunkBytes = 300;

/** While both sides of an exchange are at work, a client leaves so often, up to so many milliseconds after it has sent everything. */
const soonCases = 40;
const soonMs = 6;

/** How many answers are tampered with in each round. */
const maliciousCases = 1_500;

interface Case {
  readonly name: string;
  /** Returns whether every connection was closed in time. */
  readonly run: () => Promise<boolean>;
}

const [engine] = testEngines();

describe.skipIf(!engine)(`with BERTH_TEST_FUZZ_SEED=${seed}`, () => {
  const random = new Random(seed);
  let fixture: Fixture;
  beforeAll(async () => {
    if (!engine) return;
    fixture = await Fixture.open({ engine, drivers: 'embedded' }, { BERTH_START_TIMEOUT_SECONDS: '3600' });
    const { platform } = fixture;
    await pushTestImage(engine, platform, { image: await rawBackendImage(), service: 'raw' });
    await fixture.push('deaf');
  }, 300_000);
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  const tokenOf = ({ url }: { url: string }) => new URL(url).pathname.split('/')[1] ?? '';

  test(
    'whoever leaves, and whenever, others stay and nothing stays counted',
    { timeout: fuzzMs + 600_000 },
    async ({ annotate }) => {
      const { platform } = fixture;
      const proxyPort = portOf(platform.proxyUrl);
      const [attacked, beside] = await Promise.all([fixture.connectReady('raw'), fixture.connectReady('raw')]);
      const held = await fixture.connect('deaf');
      const witnesses = await openWitnesses(proxyPort, tokenOf(beside));
      await setQuota();
      await expect.poll(openConnections).toBe(1);
      const openFilesBefore = await openFiles();

      const allCases = () => [
        ...proxiedCases(proxyPort, tokenOf(attacked)),
        ...pipelinedCases(proxyPort, tokenOf(attacked)),
        ...pipelinedCases(proxyPort, 'x'.repeat(43)),
        ...heldCases(proxyPort, tokenOf(held)),
        ...pushCases(),
        ...streamCases(attacked.backend_id),
        ...Array.from({ length: maliciousCases }, () => maliciousCase(proxyPort, tokenOf(attacked))),
      ];
      const over = new AbortController();
      const watching = watch(witnesses, over.signal);
      await Promise.race([playAll(allCases, annotate), watching]).catch(explain);
      await Promise.race([playEndings(proxyPort, [attacked, held]), watching]);
      over.abort();
      await watching;

      expect(problemsIn(platform.log)).toEqual([]);
      await expect.poll(openConnections, { timeout: 60_000 }).toBe(1);
      for (const { witness, ending } of witnesses) await witness.ask(ending);
      await expect.poll(openFiles, { timeout: 60_000, interval: 500 }).toBeLessThan(openFilesBefore + players);
      for (const { witness } of witnesses) witness.close();
      await expect.poll(openConnections).toBe(0);
      await expect.poll(() => pushed(randomBytes(spareBytes / 2)), { timeout: 120_000, interval: 2_000 }).toBe(201);
      await terminate(platform, beside.backend_id, true);
    },
  );

  function explain(error: unknown): never {
    const { message } = error as Error;
    throw new Error(`${message}; the log ends with:\n${fixture.platform.log.slice(-2_000)}`, { cause: error });
  }

  /** Plays every case once, and then again until the time is over, each time in another order. */
  async function playAll(allCases: () => Case[], annotate: (message: string) => Promise<unknown>): Promise<void> {
    const endMs = Date.now() + fuzzMs;
    const stuck: string[] = [];
    let played = 0;
    for (let round = 0; round === 0 || Date.now() < endMs; round += 1) {
      const left = random.shuffled(allCases());
      const isEnough = () => round > 0 && Date.now() > endMs;
      const player = async () => {
        for (let next = left.pop(); next && !isEnough(); next = left.pop()) {
          if (!(await next.run())) stuck.push(next.name);
          played += 1;
        }
      };
      await Promise.all(Array.from({ length: players }, player));
    }
    expect(stuck).toEqual([]);
    await annotate(`${played} exchanges were broken off`);
  }

  /** Clients that are there when their backend becomes ready, or ends. */
  async function playEndings(port: number, [attacked, held]: [ConnectResponse, ConnectResponse]): Promise<void> {
    const late = await fixture.connect('raw');
    const toLate = exchanges.flatMap((exchange) => {
      const { length } = exchange.answer;
      const bytes = requestBytes(exchange, tokenOf(late), { cutAt: length, how: 'end' });
      return [play(port, bytes), play(port, bytes, { after: 'received', count: 1, how: 'reset' })];
    });
    const toHeld = exchanges.map((exchange) => play(port, requestBytes(exchange, tokenOf(held))));
    const api = portOf(fixture.platform.apiUrl);
    const streams = streamsOf(attacked.backend_id).map(({ request }) => play(api, request));
    await fixture.statusesUntil(late, 'ready');
    expect(await Promise.all(toLate)).not.toContain(false);
    for (const session of [attacked, held, late]) await terminate(fixture.platform, session.backend_id, true);
    expect(await Promise.all([...toHeld, ...streams])).not.toContain(false);
  }

  function proxiedCases(port: number, token: string): Case[] {
    return exchanges.flatMap((exchange): Case[] => {
      const request = requestBytes(exchange, token);
      const byClient = cutsOf(request.length, exchange.answer.length).map((cut): Case => ({
        name: `${exchange.name}: client, ${wordsOf(cut)}`,
        run: () => play(port, request, cut),
      }));
      const byBackend = Array.from({ length: exchange.answer.length + 1 }, (_, cutAt): Case => {
        const how = random.pick(leavings);
        const bytes = requestBytes(exchange, token, { cutAt, how });
        return { name: `${exchange.name}: backend, ${how} at ${cutAt}`, run: () => play(port, bytes) };
      });
      return [...byClient, ...byBackend];
    });
  }

  /** Requests that do not wait for the answers before them, the last of which asks for an upgrade. */
  function pipelinedCases(port: number, token: string): Case[] {
    const [plain, streamed, , upgrade] = exchanges;
    const all = [plain, streamed, upgrade].flatMap((each) =>
      each ? [requestBytes({ ...each, lines: linesToStay(each.lines) }, token)] : [],
    );
    const request = Buffer.concat(all);
    return cutsOf(request.length, 300).map((cut): Case => ({
      name: `pipelined: ${wordsOf(cut)}`,
      run: () => play(port, request, cut),
    }));
  }

  function maliciousCase(port: number, token: string): Case {
    const exchange = malicious(random.pick(exchanges), random);
    const bytes = requestBytes(exchange, token, { cutAt: exchange.answer.length, how: random.pick(leavings) });
    return { name: `${exchange.name}: ${JSON.stringify(exchange.answer)}`, run: () => play(port, bytes) };
  }

  /** The backend never becomes ready: whoever has sent everything leaves while the request is held. */
  function heldCases(port: number, token: string): Case[] {
    return exchanges.flatMap((exchange) => {
      const request = requestBytes(exchange, token);
      return cutsOf(request.length, 0).map((cut): Case => ({
        name: `held ${exchange.name}: ${wordsOf(cut)}`,
        run: () => play(port, request, cut),
      }));
    });
  }

  function streamsOf(backend: string): { name: string; request: Buffer }[] {
    const authorization = `Authorization: Bearer ${fixture.platform.token}`;
    return ['status', 'logs', 'metrics'].map((name) => {
      const lines = [`GET /v2/backend/${backend}/${name}/stream HTTP/1.1`, 'Host: fuzz', authorization];
      return { name, request: Buffer.from([...lines, 'Connection: close', '', ''].join('\r\n')) };
    });
  }

  function streamCases(backend: string): Case[] {
    const port = portOf(fixture.platform.apiUrl);
    return streamsOf(backend).flatMap(({ name, request }) =>
      // Only the head of an answer is there for certain.
      cutsOf(request.length, 100).map((cut): Case => ({
        name: `${name} stream: ${wordsOf(cut)}`,
        run: () => play(port, request, cut),
      })),
    );
  }

  function pushCases(): Case[] {
    const { registry } = fixture.platform;
    const port = portOf(`http://${registry}`);
    const body = Buffer.alloc(chunkBytes, 'x');
    const digest = createHash('sha256').update(body).digest('hex');
    const headOf = (method: string, path: string) =>
      Buffer.from(
        `${method} ${path} HTTP/1.1\r\nHost: ${registry}\r\nAuthorization: ${basic()}\r\nConnection: close\r\nContent-Length: ${chunkBytes}\r\n\r\n`,
      );
    const pathLengthBytes = 200;
    const lengthBytes = headOf('PATCH', '').length + pathLengthBytes + chunkBytes;
    return ['PATCH', 'PUT'].flatMap((method) =>
      cutsOf(lengthBytes, 100).map((cut): Case => ({
        name: `${method} of an upload: ${wordsOf(cut)}`,
        run: async () => {
          const upload = await beginUpload();
          const query = method === 'PUT' ? `${upload.search === '' ? '?' : '&'}digest=sha256:${digest}` : '';
          const bytes = Buffer.concat([headOf(method, `${upload.pathname}${upload.search}${query}`), body]);
          const isClosed = await play(port, bytes, { ...cut, count: Math.min(cut.count, bytes.length) });
          await cancelUpload(upload);
          return isClosed;
        },
      })),
    );
  }

  /** Every byte of a request, and of its answer, as a place to leave, each in one way. */
  function cutsOf(requestBytes: number, answerBytes: number): Cut[] {
    const all = (after: Cut['after'], from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, i): Cut => ({ after, count: from + i, how: random.pick(leavings) }));
    const soon = Array.from({ length: soonCases }, (): Cut => {
      return { after: 'sent', count: requestBytes, how: random.pick(leavings), delayMs: random.below(soonMs) };
    });
    return [...all('sent', 0, requestBytes), ...all('received', 1, answerBytes), ...soon];
  }

  const basic = () =>
    `Basic ${Buffer.from(`${fixture.platform.account}:${fixture.platform.token}`).toString('base64')}`;

  async function beginUpload(): Promise<URL> {
    const { registry, account } = fixture.platform;
    const path = `http://${registry}/v2/${account}/raw/blobs/uploads/`;
    const answer = await fetch(path, { method: 'POST', headers: { authorization: basic() } });
    if (answer.status !== 202) throw new Error(`An upload cannot begin: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
    return new URL(answer.headers.get('location') ?? '', path);
  }

  /** Until it is there no longer: what was broken off may still be under way. */
  async function cancelUpload(upload: URL): Promise<void> {
    const isGone = async () => {
      const answer = await fetch(upload, { method: 'DELETE', headers: { authorization: basic() } });
      await answer.arrayBuffer();
      return answer.status;
    };
    await expect.poll(isGone, { timeout: 60_000 }).toBe(404);
  }

  /** Pushes a blob in one request, and returns the status. */
  async function pushed(body: Buffer): Promise<number> {
    const upload = await beginUpload();
    upload.searchParams.set('digest', `sha256:${createHash('sha256').update(body).digest('hex')}`);
    const headers = { authorization: basic(), 'content-type': 'application/octet-stream' };
    const answer = await fetch(upload, { method: 'PUT', headers, body: new Uint8Array(body) });
    await answer.arrayBuffer();
    return answer.status;
  }

  /** Leaves so little room that reservations which are not given back are noticed. */
  async function setQuota(): Promise<void> {
    const { platform } = fixture;
    expect(await pushed(Buffer.alloc(chunkBytes, 'x'))).toBe(201);
    const { lines } = await runBerth(platform, 'quota', platform.account);
    const storedBytes = Number(lines[0]?.['stored_bytes']);
    const { code } = await runBerth(platform, 'quota', platform.account, String(storedBytes + spareBytes));
    expect(code).toBe(0);
  }

  async function openConnections(): Promise<number> {
    const text = await (await fetch(`${fixture.platform.operationsUrl}/metrics`)).text();
    return Number(/^berth_proxy_open_connections (\d+)$/m.exec(text)?.[1]);
  }

  async function openFiles(): Promise<number> {
    return (await readdir(`/proc/${fixture.platform.pid}/fd`)).length;
  }
});

function wordsOf({ after, count, how, delayMs = 0 }: Cut): string {
  return `${how} with ${count} ${after}, ${delayMs} ms later`;
}

function linesToStay(lines: readonly string[]): string[] {
  return lines.filter((line) => line !== 'Connection: close');
}

/** Asks others again and again, until the signal aborts. Rejects when one of them is closed. */
async function watch(witnesses: readonly { witness: Witness; ending: string }[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const { witness, ending } of witnesses) await witness.ask(ending);
    await sleep(20);
  }
}

/** One that was upgraded, and one that is kept alive. */
async function openWitnesses(port: number, token: string): Promise<{ witness: Witness; ending: string }[]> {
  const [plain, , , upgrade] = exchanges;
  if (!plain || !upgrade) throw new Error('An exchange is missing');
  const greeting = requestBytes({ ...upgrade, body: '' }, token).toString('latin1');
  const messages = { said: greeting };
  const upgraded = await Witness.open(port, () => messages.said);
  await upgraded.ask('welcome');
  messages.said = 'are you there?';
  const request = requestBytes({ ...plain, lines: [] }, token).toString('latin1');
  const kept = await Witness.open(port, () => request);
  return [
    { witness: upgraded, ending: messages.said },
    { witness: kept, ending: '\r\n\r\nhello' },
  ];
}

/** What only a part of ours that failed writes, each kind once. */
function problemsIn(log: string): string[] {
  const lines = log.split('\n').filter((line) => /^\{"level":"(?:error|fatal)"/.test(line));
  const problems = lines.map((line) => JSON.parse(line) as { msg: string; err?: { stack?: string } });
  return [...new Set(problems.map(({ msg, err }) => `${msg}: ${err?.stack}`))];
}

async function rawBackendImage(): Promise<Image> {
  const sample = await sampleImage('berth-test/raw:latest');
  const [node = []] = sample.layers;
  const program = join(import.meta.dirname, 'raw-backend.ts');
  return {
    ...sample,
    layers: [node, [{ path: '/app/raw-backend.mts', file: program }]],
    config: { ...sample.config, Cmd: ['/usr/bin/node', '/app/raw-backend.mts'], Labels: {} },
  };
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
