// Takes about 55 s
/**
 * Clients and backends that disconnect at every byte of every scenario (but see `cutPoints`), and backends that send malformed
 * responses: the process keeps running, other sessions stay open, and no aborted request is still counted.
 */
import { randomBytes } from 'node:crypto';
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
import { storeAndPull } from '../kit/engines/stored-images.ts';
import { Fixture } from '../stories/fixture.ts';
import { send, ControlConnection } from './client.ts';
import type { Cut } from './client.ts';
import { scenarios, malicious, requestBytes } from './scenarios.ts';
import { disconnects } from './plan.ts';
import { Random } from './random.ts';
import { sha256 } from '../kit/registry/digests.ts';

/** Runs each case once, then all cases again until this time has passed. `BERTH_TEST_FUZZ_SECONDS=3600` tests for an hour. */
const fuzzMs = Number(process.env['BERTH_TEST_FUZZ_SECONDS'] ?? '0') * 1000;

/** The seed of a failed run, in `BERTH_TEST_FUZZ_SEED`, repeats its cases in the same order. */
const seed = Number(process.env['BERTH_TEST_FUZZ_SEED'] ?? randomBytes(4).readUInt32BE());

/** Enough concurrent cases to affect each other, and few enough that two cores also serve the other sessions. */
const runners = 8;

/** Small enough for a few leaked reservations to fail the last push, which needs half of it. */
const spareBytes = 16 * 1024;
const chunkBytes = 100;

/** The number of cases in which a client disconnects while the backend responds, up to `soonMs` after the client's last byte. */
const soonCases = 15;
const soonMs = 6;

/** The number of malformed responses in each round. They differ in every run. */
const maliciousCases = 400;

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
    // One backend must not become ready, or time out, before the end.
    const startTimeoutSeconds = Math.ceil(fuzzMs / 1000) + 3_600;
    fixture = await Fixture.open(
      { engine, drivers: 'embedded' },
      { BERTH_START_TIMEOUT_SECONDS: String(startTimeoutSeconds) },
    );
    const { platform } = fixture;
    await storeAndPull(engine, platform, { image: await rawBackendImage(), service: 'raw' });
    await fixture.push('deaf');
  }, 300_000);
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  const tokenOf = ({ url }: { url: string }) => new URL(url).pathname.split('/')[1] ?? '';

  test(
    'an aborted request closes no other connection, and is not counted any more',
    { timeout: fuzzMs + 600_000 },
    async ({ annotate }) => {
      const { platform } = fixture;
      const proxyPort = portOf(platform.proxyUrl);
      const [attacked, beside] = await Promise.all([fixture.connectReady('raw'), fixture.connectReady('raw')]);
      const waiting = await fixture.connect('deaf');
      const controls = await openControls(proxyPort, tokenOf(beside));
      await setQuota();
      const sample = await beginUpload();
      await cancelUpload(sample);
      await expect.poll(openConnections).toBe(1);
      const openFilesBefore = await openFiles();

      const allCases = () => [
        ...proxiedCases(proxyPort, tokenOf(attacked)),
        ...pipelinedCases(proxyPort, tokenOf(attacked)),
        ...pipelinedCases(proxyPort, 'x'.repeat(43)),
        ...waitingCases(proxyPort, tokenOf(waiting)),
        ...pushCases(sample),
        ...streamCases(attacked.backend_id),
        ...Array.from({ length: maliciousCases }, () => maliciousCase(proxyPort, tokenOf(attacked))),
      ];
      const finished = new AbortController();
      const watching = watch(controls, finished.signal);
      await Promise.race([runAll(allCases, annotate), watching]).catch(explain);
      await Promise.race([runStatusChanges(proxyPort, [attacked, waiting]), watching]);
      finished.abort();
      await watching;

      expect(problemsIn(platform.log)).toEqual([]);
      await expect.poll(openConnections, { timeout: 60_000 }).toBe(1);
      for (const { control, suffix } of controls) await control.ask(suffix);
      // The pools of a busy platform are larger, but a leak of one kind of case would exceed this.
      await expect.poll(openFiles, { timeout: 60_000, interval: 500 }).toBeLessThan(openFilesBefore + 2 * runners);
      for (const { control } of controls) control.close();
      await expect.poll(openConnections).toBe(0);
      await expect.poll(() => pushed(randomBytes(spareBytes / 2)), { timeout: 120_000, interval: 2_000 }).toBe(201);
      await terminate(platform, beside.backend_id, true);
    },
  );

  function explain(error: unknown): never {
    const { message } = error as Error;
    throw new Error(`${message}; the log ends with:\n${fixture.platform.log.slice(-2_000)}`, { cause: error });
  }

  /** Runs every case once, then repeats them until the time has passed, in another order each round. */
  async function runAll(allCases: () => Case[], annotate: (message: string) => Promise<unknown>): Promise<void> {
    const endMs = Date.now() + fuzzMs;
    const stuck: string[] = [];
    let ran = 0;
    for (let round = 0; round === 0 || Date.now() < endMs; round += 1) {
      const left = random.shuffled(allCases());
      const isEnough = () => round > 0 && Date.now() > endMs;
      const runner = async () => {
        for (let next = left.pop(); next && !isEnough(); next = left.pop()) {
          if (!(await next.run())) stuck.push(next.name);
          ran += 1;
        }
      };
      await Promise.all(Array.from({ length: runners }, runner));
    }
    expect(stuck).toEqual([]);
    await annotate(`${ran} requests were aborted`);
  }

  /** Tests clients that are connected when their backend becomes ready or ends. */
  async function runStatusChanges(
    port: number,
    [attacked, waiting]: [ConnectResponse, ConnectResponse],
  ): Promise<void> {
    const late = await fixture.connect('raw');
    const toLate = scenarios.flatMap((scenario) => {
      const { length } = scenario.answer;
      const bytes = requestBytes(scenario, tokenOf(late), { cutAt: length, how: 'end' });
      return [send(port, bytes), send(port, bytes, { after: 'received', count: 1, how: 'reset' })];
    });
    const toWaiting = scenarios.map((scenario) => send(port, requestBytes(scenario, tokenOf(waiting))));
    const api = portOf(fixture.platform.apiUrl);
    const streams = streamsOf(attacked.backend_id).map(({ request }) => send(api, request));
    await fixture.statusesUntil(late, 'ready');
    expect(await Promise.all(toLate)).not.toContain(false);
    for (const session of [attacked, waiting, late]) await terminate(fixture.platform, session.backend_id, true);
    expect(await Promise.all([...toWaiting, ...streams])).not.toContain(false);
  }

  function proxiedCases(port: number, token: string): Case[] {
    return scenarios.flatMap((scenario): Case[] => {
      const request = requestBytes(scenario, token);
      const byClient = cutsOf(request, scenario.answer.length).map((cut): Case => ({
        name: `${scenario.name}: client, ${wordsOf(cut)}`,
        run: () => send(port, request, cut),
      }));
      const byBackend = Array.from({ length: scenario.answer.length + 1 }, (_, cutAt): Case => {
        const how = random.pick(disconnects);
        const bytes = requestBytes(scenario, token, { cutAt, how });
        return { name: `${scenario.name}: backend, ${how} at ${cutAt}`, run: () => send(port, bytes) };
      });
      return [...byClient, ...byBackend];
    });
  }

  /** Pipelined requests, the last of which requests an upgrade. */
  function pipelinedCases(port: number, token: string): Case[] {
    const [plain, streamed, , upgrade] = scenarios;
    const all = [plain, streamed, upgrade].flatMap((each) =>
      each ? [requestBytes({ ...each, lines: linesWithoutClose(each.lines) }, token)] : [],
    );
    const request = Buffer.concat(all);
    return cutsOf(request, 300).map((cut): Case => ({
      name: `pipelined: ${wordsOf(cut)}`,
      run: () => send(port, request, cut),
    }));
  }

  function maliciousCase(port: number, token: string): Case {
    const scenario = malicious(random.pick(scenarios), random);
    const bytes = requestBytes(scenario, token, { cutAt: scenario.answer.length, how: random.pick(disconnects) });
    return { name: `${scenario.name}: ${JSON.stringify(scenario.answer)}`, run: () => send(port, bytes) };
  }

  /** The backend never becomes ready: clients disconnect while the proxy holds their requests. */
  function waitingCases(port: number, token: string): Case[] {
    return scenarios.flatMap((scenario) => {
      const request = requestBytes(scenario, token);
      return cutsOf(request, 0).map((cut): Case => ({
        name: `waiting ${scenario.name}: ${wordsOf(cut)}`,
        run: () => send(port, request, cut),
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
      // Only the head of the response is certain to arrive.
      cutsOf(request, 100).map((cut): Case => ({
        name: `${name} stream: ${wordsOf(cut)}`,
        run: () => send(port, request, cut),
      })),
    );
  }

  /** @param sample - the path of another upload, of the same length */
  function pushCases(sample: URL): Case[] {
    const { registry } = fixture.platform;
    const port = portOf(`http://${registry}`);
    const body = Buffer.alloc(chunkBytes, 'x');
    const digest = sha256(body);
    const headOf = (method: string, path: string) =>
      Buffer.from(
        `${method} ${path} HTTP/1.1\r\nHost: ${registry}\r\nAuthorization: ${basic()}\r\nConnection: close\r\nContent-Length: ${chunkBytes}\r\n\r\n`,
      );
    const bytesOf = (method: string, upload: URL) => {
      const query = method === 'PUT' ? `${upload.search === '' ? '?' : '&'}digest=${digest}` : '';
      return Buffer.concat([headOf(method, `${upload.pathname}${upload.search}${query}`), body]);
    };
    return ['PATCH', 'PUT'].flatMap((method) =>
      cutsOf(bytesOf(method, sample), 100).map((cut): Case => ({
        name: `${method} of an upload: ${wordsOf(cut)}`,
        run: async () => {
          const upload = await beginUpload();
          const bytes = bytesOf(method, upload);
          const isClosed = await send(port, bytes, { ...cut, count: Math.min(cut.count, bytes.length) });
          await cancelUpload(upload);
          return isClosed;
        },
      })),
    );
  }

  /** Disconnects at the cut points of a request and at every byte of its response, each in a random way. */
  function cutsOf(request: Buffer, answerBytes: number): Cut[] {
    const all = (after: Cut['after'], counts: readonly number[]) =>
      counts.map((count): Cut => ({ after, count, how: random.pick(disconnects) }));
    const soon = Array.from({ length: soonCases }, (): Cut => {
      return { after: 'sent', count: request.length, how: random.pick(disconnects), delayMs: random.below(soonMs) };
    });
    const received = Array.from({ length: answerBytes }, (_, i) => i + 1);
    return [...all('sent', cutPoints(request)), ...all('received', received), ...soon];
  }

  const basic = () =>
    `Basic ${Buffer.from(`${fixture.platform.account}:${fixture.platform.token}`).toString('base64')}`;

  async function beginUpload(): Promise<URL> {
    const { registry, account } = fixture.platform;
    const path = `http://${registry}/v2/${account}/raw/blobs/uploads/`;
    const answer = await fetch(path, { method: 'POST', headers: { authorization: basic() } });
    if (answer.status !== 202) throw new Error(`Starting an upload failed: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
    return new URL(answer.headers.get('location') ?? '', path);
  }

  /** Deletes an upload, and retries until it does not exist: an aborted request may still be running. */
  async function cancelUpload(upload: URL): Promise<void> {
    const deleteUpload = async () => {
      const answer = await fetch(upload, { method: 'DELETE', headers: { authorization: basic() } });
      await answer.arrayBuffer();
      return answer.status;
    };
    await expect.poll(deleteUpload, { timeout: 60_000 }).toBeOneOf([204, 404]);
  }

  /** Pushes a blob in one request, and returns the status. */
  async function pushed(body: Buffer): Promise<number> {
    const upload = await beginUpload();
    upload.searchParams.set('digest', sha256(body));
    const headers = { authorization: basic(), 'content-type': 'application/octet-stream' };
    const answer = await fetch(upload, { method: 'PUT', headers, body: new Uint8Array(body) });
    await answer.arrayBuffer();
    return answer.status;
  }

  /** Sets a quota so small that the last push fails if reservations leak. */
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

/** Every byte of a request, but only every eighth in a long run of letters and digits, whose bytes are alike. */
function cutPoints(request: Buffer): number[] {
  const middles = Array.from(request.toString('latin1').matchAll(/(?<=\w{8})[\w-]{44,}(?=\w{8})/g), (run) => run);
  const isSkipped = (point: number) =>
    middles.some(({ index, 0: run }) => point > index && point < index + run.length && (point - index) % 8 !== 0);
  return Array.from({ length: request.length + 1 }, (_, point) => point).filter((point) => !isSkipped(point));
}

function wordsOf({ after, count, how, delayMs = 0 }: Cut): string {
  return `${how} with ${count} ${after}, ${delayMs} ms later`;
}

function linesWithoutClose(lines: readonly string[]): string[] {
  return lines.filter((line) => line !== 'Connection: close');
}

/** Sends on the control connections until the signal aborts. Rejects when one of them is closed. */
async function watch(
  controls: readonly { control: ControlConnection; suffix: string }[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const { control, suffix } of controls) await control.ask(suffix);
    await sleep(20);
  }
}

/** Opens two control connections: an upgraded one, and one that is kept alive. */
async function openControls(port: number, token: string): Promise<{ control: ControlConnection; suffix: string }[]> {
  const [plain, , , upgrade] = scenarios;
  if (!plain || !upgrade) throw new Error('A scenario is missing');
  const greeting = requestBytes({ ...upgrade, body: '' }, token).toString('latin1');
  const messages = { current: greeting };
  const upgraded = await ControlConnection.open(port, () => messages.current);
  await upgraded.ask('welcome');
  messages.current = 'are you there?';
  const request = requestBytes({ ...plain, lines: [] }, token).toString('latin1');
  const kept = await ControlConnection.open(port, () => request);
  return [
    { control: upgraded, suffix: messages.current },
    { control: kept, suffix: '\r\n\r\nhello' },
  ];
}

/** The distinct errors in the platform's log. */
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
