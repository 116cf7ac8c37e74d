// Takes about 30 s
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { metricsRecord } from '../../contract/backend.ts';
import type { MetricsRecord } from '../../contract/backend.ts';
import { logRecord, maxLineBytes, backendStreamPath } from '../../contract/backend-streams.ts';
import type { LogRecord } from '../../contract/backend-streams.ts';
import { listen, newServer } from '../../core/http/listener.ts';
import { linkGet } from '../../core/link/link-client.ts';
import { linesOf } from '../../core/text/lines.ts';
import type { BackendLimits } from '../../model/backend.ts';
import { nearestGateway, nodes } from '../../model/node.ts';
import { maxStreamsOfBackend, sendRecords } from './backend-streams.ts';
import { openEngineGate } from '../testing/engine-gate.ts';
import type { EngineGate } from '../testing/engine-gate.ts';
import { testEngineHost } from '../testing/test-engine.ts';
import { eventually, openTestPlatform, polite, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import type { Worker } from '../worker.ts';

it('sends records no faster than the client reads', async () => {
  const batches = 1_000;
  const pulled: Record<string, number> = {};
  async function* source(of: string) {
    for (let i = 1; i <= batches; i += 1) {
      pulled[of] = i;
      yield [{ at: '', line: 'x'.repeat(65_536) }];
    }
  }
  const server = newServer();
  server.on('request', ({ url = '' }, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    sendRecords(source(url), response, gone.signal).catch(() => {});
  });
  await using listener = await listen(server, { host: '127.0.0.1', port: 0, drainMs: 0 });
  const get = async (path: string) => {
    const sent = request({ port: listener.port, path, agent: false }).end();
    return ((await once(sent, 'response')) as [IncomingMessage])[0];
  };
  const [standing, reading] = await Promise.all([get('/standing'), get('/reading')]);
  reading.resume();
  await once(reading, 'end');
  // Both had the same time to send.
  expect(pulled['/reading']).toBe(batches);
  expect(pulled['/standing']).toBeLessThan(batches / 4);
  standing.destroy();
});

const why = await whyNoTests();

/** Requests to the engine that follow a log. */
const following = /^GET \/containers\/\S+\/logs/;

describe.skipIf(why !== undefined)(`the streams of a node's backends ${why ?? ''}`, () => {
  let gate: EngineGate;
  let platform: TestPlatform;
  let worker: Worker;
  beforeAll(async () => {
    gate = await openEngineGate(testEngineHost);
    platform = await openTestPlatform(gate.host);
    worker = await platform.openWorker();
  });
  afterAll(async () => {
    gate?.open();
    await worker?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
    await gate?.[Symbol.asyncDispose]();
  });

  async function ask(path: string, { node = platform.node, signal = AbortSignal.timeout(60_000) } = {}) {
    const document = await platform.store.get(nodes, platform.node);
    const gateway = document && nearestGateway(document);
    if (!gateway) throw new Error('The node has no gateway');
    return await linkGet({ ...gateway, secret: platform.secret, signal }, node, path);
  }

  const askForLog = (backend: string, after?: string) => ask(backendStreamPath({ about: 'log', backend, after }));

  const askForMetrics = (backend: string) => ask(backendStreamPath({ about: 'metrics', backend }));

  async function nextRecord(answer: IncomingMessage): Promise<MetricsRecord> {
    const [chunk] = (await once(answer, 'data')) as [Buffer];
    return metricsRecord.parse(JSON.parse(chunk.toString()));
  }

  async function recordsOf(answer: IncomingMessage): Promise<LogRecord[]> {
    expect(answer.statusCode).toBe(200);
    const records: LogRecord[] = [];
    for await (const line of linesOf(answer)) records.push(logRecord.parse(JSON.parse(line)));
    return records;
  }

  /** The first records of a log that continues. */
  async function firstOf(count: number, answer: IncomingMessage): Promise<LogRecord[]> {
    const records: LogRecord[] = [];
    for await (const line of linesOf(answer)) if (records.push(logRecord.parse(JSON.parse(line))) === count) break;
    return records;
  }

  const logOf = async (backend: string, after?: string) => await recordsOf(await askForLog(backend, after));
  const run = async (script: string, limits: BackendLimits = {}) =>
    await platform.schedule({ imageDigest: await platform.images.add(script), limits });

  it('sends the same log while it is written and after it is kept, whatever its content', async () => {
    const id = await run(
      [
        String.raw`printf 'grüße 🙂\n\033[31mred\033[0m\r\n\377\376\000\n\none\rtwo\n'`,
        String.raw`head -c 1048576 /dev/zero | tr '\000' x; echo`,
        'httpd -p $PORT',
        'while ! test -e /end; do sleep 0.02; done',
        String.raw`printf 'no newline'; printf 'nor here' >&2`,
      ].join('; '),
    );
    await platform.until(id, 'ready');
    const live = recordsOf(await askForLog(id));
    // Ends although the container runs. The engine reads what a container writes a moment later.
    const stored = await eventually(async () => {
      const soFar = await recordsOf(await ask(backendStreamPath({ about: 'log', backend: id, storedOnly: true })));
      return soFar.length < 21 ? undefined : soFar;
    });
    await platform
      .containerOf(id)
      .exec({ Cmd: ['touch', '/end'] })
      .then((exec) => exec.start({}));
    const records = await live;
    expect(stored).toEqual(records.slice(0, -2));
    expect(records.slice(0, 5).map(({ line }) => line)).toEqual([
      'grüße 🙂',
      '\u001b[31mred\u001b[0m',
      '\ufffd\ufffd\u0000',
      '',
      'one\rtwo',
    ]);
    expect(records.slice(5, -2).map(({ line }) => line)).toEqual(Array<string>(16).fill('x'.repeat(maxLineBytes)));
    expect(
      records
        .slice(-2)
        .map(({ line }) => line)
        .sort(),
    ).toEqual(['no newline', 'nor here']);
    const places = records.map(({ at }) => at);
    expect(places).toEqual([...new Set(places)].sort());
    await eventually(async () => (await platform.stateOf(id)) === undefined || undefined);
    // With the long line, the log is longer than the kept part.
    const kept = await logOf(id);
    expect(kept.length).toBeGreaterThan(10);
    expect(kept).toEqual(records.slice(-kept.length));
    expect(await logOf(id, places.at(-3))).toEqual(records.slice(-2));
  });

  it('continues after any position, as if it had never stopped', async () => {
    const id = await run('for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo error $i >&2; done; ' + polite);
    await platform.until(id, 'ready');
    const whole = recordsOf(await askForLog(id));
    const soFar = await firstOf(18, await askForLog(id));
    for (const [i, { at }] of soFar.slice(0, -1).entries()) {
      expect(await firstOf(17 - i, await askForLog(id, at))).toEqual(soFar.slice(i + 1));
    }
    await platform.end(id);
    const records = await whole;
    expect(records).toEqual(soFar);
    for (const [i, { at }] of records.entries()) expect(await logOf(id, at)).toEqual(records.slice(i + 1));
  });

  it('follows a log that grows fast to its last line, and keeps its end', async () => {
    const id = await run(
      'httpd -p $PORT; sleep 0.5; yes 0123456789012345678901234567890123456789 | head -c 12000000; echo; echo last',
    );
    await platform.until(id, 'ready');
    let count = 0;
    let last: LogRecord | undefined;
    for await (const line of linesOf(await askForLog(id))) {
      const record = logRecord.parse(JSON.parse(line));
      if (last && record.at <= last.at) throw new Error(`${record.at} after ${last.at}`);
      last = record;
      count += 1;
    }
    expect(last?.line).toBe('last');
    // Lines that the engine discarded before they were read are lost, but not all lines.
    expect(count).toBeGreaterThan(10_000);
    const kept = await logOf(id);
    expect(kept.at(-1)).toEqual(last);
    expect(kept.length).toBeGreaterThan(10_000);
  });

  it('measures a backend once for all listeners, and not at all without listeners', async () => {
    const id = await run('httpd -p $PORT; while :; do :; done', { cpuPeriodPercent: 20 });
    const { limits } = await platform.until(id, 'ready');
    expect(limits.memoryBytes).toBeUndefined();
    const measuring = /^GET \/containers\/\S+\/stats/;
    const before = gate.asked(measuring);
    const [one, other] = await Promise.all([askForMetrics(id), askForMetrics(id)]);
    const [first, second] = await Promise.all([nextRecord(one), nextRecord(other)]);
    expect(gate.asked(measuring)).toBe(before + 1);
    expect(second).toEqual(first);
    expect(first.backend_id).toBe(id);
    // A fifth of a core of the machine all the time, or what other processes leave of it.
    expect(first.cpu_used).toBeGreaterThan(0.05e9);
    expect(first.cpu_used).toBeLessThanOrEqual(first.sys_cpu);
    expect(first.mem_limit).toBeGreaterThan(first.mem_used);
    expect(first.mem_available).toBe(first.mem_limit - first.mem_used);
    one.destroy();
    await nextRecord(other);
    expect(gate.openAfter(measuring)).toBe(1);
    other.destroy();
    await eventually(async () => gate.openAfter(measuring) === 0 || undefined);
    const third = await askForMetrics(id);
    await nextRecord(third);
    await platform.end(id);
    // The stream ends with the backend, and later streams are empty.
    for await (const line of linesOf(third)) metricsRecord.parse(JSON.parse(line));
    expect(await recordsOf(await askForMetrics(id))).toEqual([]);
  });

  it('closes its request to the engine as soon as the client disconnects', async () => {
    const id = await run(polite);
    await platform.until(id, 'ready');
    const answers = await Promise.all([askForLog(id), askForLog(id)]);
    await expect.poll(() => gate.openAfter(following)).toBe(2);
    answers[0]?.destroy();
    await expect.poll(() => gate.openAfter(following)).toBe(1);
    answers[1]?.destroy();
    await expect.poll(() => gate.openAfter(following)).toBe(0);
    await platform.end(id);
  });

  it('follows a backend for a limited number of clients at a time', async () => {
    const id = await run(polite);
    await platform.until(id, 'ready');
    const answers = await Promise.all(Array.from({ length: maxStreamsOfBackend }, () => askForLog(id)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
    for (const ask of [askForLog, askForMetrics]) {
      const refused = await ask(id);
      refused.resume();
      expect(refused.statusCode).toBe(429);
    }
    answers[0]?.destroy();
    await eventually(async () => ((await askForLog(id)).statusCode === 200 ? true : undefined));
    await platform.end(id);
  });

  it('sends an empty stream for an unknown or deleted backend', async () => {
    expect(await logOf('neverwas')).toEqual([]);
    const silent = await run(polite);
    await platform.until(silent, 'ready');
    await platform.end(silent);
    expect(await logOf(silent)).toEqual([]);
  });

  it('refuses all other requests, and requests to another node', async () => {
    const statusOf = async (path: string, node?: string) => {
      const answer = await ask(path, node === undefined ? {} : { node });
      answer.resume();
      return answer.statusCode;
    };
    expect(await statusOf('/')).toBe(404);
    expect(await statusOf('/backends/one/log?after=yesterday')).toBe(404);
    expect(await statusOf('/backends/..%2fsecret/log')).toBe(404);
    expect(await statusOf('/backends/one/log', 'another')).toBe(421);
  });

  it('answers 503 while its engine does not answer', async () => {
    const id = await run(`echo there; ${polite}`);
    await platform.until(id, 'ready');
    gate.close();
    const answer = await askForLog(id);
    expect(answer.statusCode).toBe(503);
    answer.resume();
    gate.open();
    await eventually(async () => ((await askForLog(id)).statusCode === 200 ? true : undefined));
    await platform.end(id);
  });

  it('keeps the log of a container whose backend another component ended while no worker ran', async () => {
    const id = await run(`echo there; ${polite}`);
    await platform.until(id, 'ready');
    await worker[Symbol.asyncDispose]();
    await platform.declareLost(id);
    worker = await platform.openWorker();
    await eventually(async () => (await platform.stateOf(id)) === undefined || undefined);
    expect((await logOf(id)).map(({ line }) => line)).toEqual(['there']);
  });

  it('resets open streams when it closes, so that they do not look like complete logs', async () => {
    const id = await run(`echo there; ${polite}`);
    await platform.until(id, 'ready');
    const reading = recordsOf(await askForLog(id)).then(
      () => 'ended',
      () => 'broken',
    );
    await worker[Symbol.asyncDispose]();
    expect(await reading).toBe('broken');
    worker = await platform.openWorker();
    await platform.end(id);
  });
});
