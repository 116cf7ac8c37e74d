/** Log and metrics streams from a node whose answers the test writes. */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable, pipeline } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { advance, assign, backends, becomeTerminated, newBackend } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { nodes } from '../model/node.ts';
import { openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';
import { openTestNode } from './testing/test-node.ts';

const position = (index: number) => `1767225600.000000000-${String(index).padStart(8, '0')}`;
const record = (index: number, line = `line ${index}`) => `${JSON.stringify({ at: position(index), line })}\n`;

let parts: AsyncDisposableStack;
let api: TestApi;
/** An access token that allows only reading. */
let token: string;
/** How the node answers requests. */
let answer: (request: IncomingMessage, response: ServerResponse) => void;
/** The host and the path of each request to the node. */
let requested: string[];

beforeEach(async () => {
  parts = new AsyncDisposableStack();
  api = parts.use(await openTestApi());
  token = await api.tokenFor('acme', ['read']);
  requested = [];
  const node = await openTestNode(api, (request, response) => {
    requested.push(`${request.headers.host} ${request.url}`);
    answer(request, response);
  });
  parts.use(node);
});
afterEach(() => parts.disposeAsync());

const running = (backend: Backend) => advance(assign(backend, 'node-1'), 'waiting', new Date());
const ended = (backend: Backend) => becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, new Date());

async function insert(...changes: ((backend: Backend) => Backend)[]): Promise<void> {
  const names = { account: 'acme', service: 'draw', environment: 'default', cluster: 'default' };
  const plan = { id: 'one', ...names, imageDigest: 'sha256:0', limits: {}, maxIdleSeconds: 300, port: 8080 };
  await api.store.insert(
    backends,
    changes.reduce((backend, change) => change(backend), newBackend(plan, new Date())),
  );
}

interface OpenOptions {
  readonly stream?: 'logs' | 'metrics';
  readonly as?: string;
  readonly lastEventId?: string;
}

async function open({ stream = 'logs', as = token, lastEventId }: OpenOptions = {}): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${as}`, ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) };
  const sent = request({ port: api.port, path: `/v2/backend/one/${stream}/stream`, headers, agent: false }).end();
  return ((await once(sent, 'response')) as [IncomingMessage])[0];
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) text += chunk;
  return text;
}

test('each line is an event whose ID is its position, and a stream continues after Last-Event-ID', async () => {
  await insert(running);
  answer = (_request, response) => void response.end(record(0) + record(1, 'two\rlines'));
  const first = await open();
  expect(first.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const events = [`id: ${position(0)}\ndata: line 0\n\n`, `id: ${position(1)}\ndata: two\ndata: lines\n\n`];
  expect(await textOf(first)).toBe(`retry: 2000\n\n${events.join('')}`);
  await textOf(await open({ lastEventId: position(1) }));
  await textOf(await open({ lastEventId: '7' }));
  expect(requested).toEqual([
    'node-1 /backends/one/log',
    `node-1 /backends/one/log?after=${position(1)}`,
    'node-1 /backends/one/log',
  ]);
});

test('only the account of the backend can read its streams, with a token that allows reading', async () => {
  await insert(running);
  const [otherToken, connector] = [await api.tokenFor('other', ['read']), await api.tokenFor('acme', ['connect'])];
  for (const stream of ['logs', 'metrics'] as const) {
    const foreign = await open({ stream, as: otherToken });
    expect([foreign.statusCode, JSON.parse(await textOf(foreign)).error.code]).toEqual([404, 'BackendNotFound']);
    const without = await open({ stream, as: connector });
    expect([without.statusCode, JSON.parse(await textOf(without)).error.code]).toEqual([403, 'Forbidden']);
  }
  expect(requested).toEqual([]);
});

test('a stream waits for a backend that has not started, and ends if the backend never starts', async () => {
  await insert();
  answer = (_request, response) => void response.end(record(0));
  const waiting = await open();
  const [begun] = (await once(waiting, 'data')) as [Buffer];
  expect(begun.toString()).toBe('retry: 2000\n\n');
  expect(requested).toEqual([]);
  await api.change('one', running);
  expect(await textOf(waiting)).toContain('data: line 0');
  await api.store.delete(backends, 'one');
  await insert();
  const never = textOf(await open());
  await api.change('one', ended);
  expect(await never).toBe('retry: 2000\n\n');
  expect(requested).toHaveLength(1);
});

test('a node that is unreachable, busy or replaced is reported with 503 and Retry-After', async () => {
  await insert(running, ended);
  const refused = async (status = 503, code = 'Unavailable') => {
    const response = await open();
    expect([response.statusCode, response.headers['retry-after']]).toEqual([status, '2']);
    expect(JSON.parse(await textOf(response)).error.code).toBe(code);
  };
  answer = (_request, response) => void response.writeHead(429).end();
  await refused(429, 'TooManyRequests');
  answer = (_request, response) => void response.writeHead(421).end();
  await refused();
  answer = (_request, response) => void response.destroy();
  await refused();
  await api.store.update(nodes, 'node-1', (node) => ({ ...node, ownMachineGateway: { host: '127.0.0.1', port: 1 } }));
  await refused();
  await api.store.update(nodes, 'node-1', ({ ownMachineGateway: _gone, ...node }) => node);
  await refused();
  await api.store.delete(nodes, 'node-1');
  await refused();
  // An ended backend has no metrics, so the API sends no request to a node.
  expect(await textOf(await open({ stream: 'metrics' }))).toBe('retry: 2000\n\n');
});

test('a stream that fails at the node does not look complete', async () => {
  await insert(running);
  answer = (_request, response) => {
    response.write(record(0));
    response.write('{"at":"half a rec', () => response.destroy());
  };
  await expect(textOf(await open())).rejects.toThrow('aborted');
});

test('a client that does not read for a minute is disconnected and counted, which ends the request to the node', async () => {
  const clock = new ManualClock(new Date());
  await using slow = await openTestApi({ clock });
  const nodeEnded = Promise.withResolvers<void>();
  const lines = Array.from({ length: 100 }, (_, i) => record(i, 'x'.repeat(1000))).join('');
  await using _node = await openTestNode(slow, (_request, response) => {
    response.once('close', nodeEnded.resolve);
    Readable.from(endless(lines)).pipe(response);
  });
  await insert(running);
  const backend = await api.store.get(backends, 'one');
  if (backend) await slow.store.insert(backends, backend);
  const client = connect(slow.port, '127.0.0.1');
  client.on('error', () => {});
  client.write(`GET /v2/backend/one/logs/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${slow.token}\r\n\r\n`);
  await once(client, 'readable');
  let ended = false;
  void nodeEnded.promise.then(() => (ended = true));
  // As long as the system accepts bytes for the client, it counts as reading.
  await expect
    .poll(
      async () => {
        await clock.advance(10_000);
        return ended;
      },
      { timeout: 30_000 },
    )
    .toBe(true);
  expect(await slow.metrics.metrics()).toContain('berth_api_dropped_streams_total{reason="stalled"} 1');
  client.destroy();
});

function* endless(text: string): Generator<string, never> {
  for (;;) yield text;
}

test('a client that disconnects cancels the request to the node', async () => {
  await insert(running);
  const left = Promise.withResolvers<void>();
  answer = (_request, response) => {
    response.once('close', left.resolve);
    response.write(record(0));
  };
  const response = await open();
  await once(response, 'data');
  response.destroy();
  expect(await left.promise).toBeUndefined();
});

test('streams end when the API closes', async () => {
  await insert(running);
  answer = (_request, response) => void response.write(record(0));
  const response = await open();
  const text = textOf(response);
  await expect.poll(() => requested).toHaveLength(1);
  await api.component[Symbol.asyncDispose]();
  expect(await text).toContain('retry: 2000');
});

test('a node is read no faster than the client reads', async () => {
  await insert(running);
  const batches = 1_500;
  const written: number[] = [];
  answer = (_request, response) => {
    const number = written.push(0) - 1;
    const source = Readable.from(
      (function* () {
        for (let i = 0; i < batches; i += 1) {
          written[number] = i + 1;
          yield record(i, 'x'.repeat(65_536));
        }
      })(),
    );
    pipeline(source, response, () => {});
  };
  const stalled = await open();
  const reading = await open();
  reading.resume();
  await once(reading, 'end');
  // Both streams ran for the same time. The system buffers up to 10 MB for each of a stream's two connections, a fifth of all bytes.
  expect(written[1]).toBe(batches);
  expect(written[0]).toBeLessThan(batches / 2);
  stalled.destroy();
});

test('metrics are sent field by field, and their IDs continue', async () => {
  await insert(running);
  const metrics = { backend_id: 'one', cpu_used: 1, sys_cpu: 2, mem_used: 3, mem_limit: 10, mem_available: 7 };
  answer = (_request, response) => void response.end(`${JSON.stringify(metrics)}\n${JSON.stringify(metrics)}\n`);
  const text = await textOf(await open({ stream: 'metrics', lastEventId: '41' }));
  expect(text.match(/^id: .*$/gm)).toEqual(['id: 42', 'id: 43']);
  expect(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '')).toEqual(metrics);
  expect(requested).toEqual(['node-1 /backends/one/metrics']);
});
