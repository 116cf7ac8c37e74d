/** When an API process stops, clients of event streams receive the end of the stream, and the time after which to reconnect. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';
import { openTestNode } from './testing/test-node.ts';
import { advance, assign } from '../model/backend.ts';

let parts: AsyncDisposableStack;
let api: TestApi;
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  api = parts.use(await openTestApi());
});
afterEach(() => parts.disposeAsync());

/** A stream that a client reads, and its text when the server has ended it; a stream that is cut off rejects. */
interface Reading {
  /** Resolves when the text contains this. */
  readonly until: (part: string) => Promise<void>;
  readonly whole: Promise<string>;
}

async function read(path: string): Promise<Reading> {
  const headers = { authorization: `Bearer ${api.token}`, accept: 'text/event-stream' };
  const [response] = (await once(request({ port: api.port, path, headers, agent: false }).end(), 'response')) as [
    IncomingMessage,
  ];
  expect(response.statusCode).toBe(200);
  let text = '';
  response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const whole = new Promise<string>((resolve, reject) => {
    response.once('end', () => resolve(text)).once('error', reject);
  });
  whole.catch(() => {});
  return { until: async (part) => await expect.poll(() => text).toContain(part), whole };
}

/** The events of a stream, and its last field: the time after which its client reconnects. */
function partsOf(text: string): { events: number; retryMs: number } {
  const [, before = '', retry = ''] = /^retry: 2000\n\n([^]*)retry: (\d+)\n\n$/.exec(text) ?? [];
  return { events: before.split('data: ').length - 1, retryMs: Number(retry) };
}

const spawn = async (path = '/v2/service/acme/draw/connect') => (await api.post(path, {})).body;

test.each([
  ['the statuses of v2', async () => `/v2/backend/${(await spawn()).backend_id}/status/stream`, 1],
  ['the states of v1', async () => `/v1/backend/${(await spawn()).backend_id}/status/stream`, 1],
  ['the states of the earliest form', async () => `/backend/${(await spawn()).backend_id}/status/stream`, 1],
  ['a readiness page', async () => `${new URL((await spawn()).ready_url).pathname}events`, 1],
  [
    'the log of a backend that has not started, v2',
    async () => `/v2/backend/${(await spawn()).backend_id}/logs/stream`,
    0,
  ],
  ['the log of a backend that has not started, v1', async () => `/v1/backend/${(await spawn()).backend_id}/logs`, 0],
  [
    'the metrics of a backend that has not started',
    async () => `/v2/backend/${(await spawn()).backend_id}/metrics/stream`,
    0,
  ],
  ['a log-in', async () => `/cli-login/${(await spawn('/cli-login')).token}/status/stream`, 0],
])('%s: the stream ends with the time after which to reconnect', async (_what, pathOf, events) => {
  const stream = await read(await pathOf());
  await stream.until(events > 0 ? 'data: ' : 'retry: 2000\n\n');
  await api.component[Symbol.asyncDispose]();
  const seen = partsOf(await stream.whole);
  expect(seen.events).toBe(events);
  expect(seen.retryMs).toBeGreaterThanOrEqual(500);
  expect(seen.retryMs).toBeLessThanOrEqual(2_500);
});

test('a stored log that a node sends breaks off, because its client takes a proper end as complete', async () => {
  const record = { at: '1767225600.000000000-00000000', line: 'one' };
  const sent = `${JSON.stringify(record)}\n`;
  parts.use(await openTestNode(api, (_request, response) => void response.write(sent)));
  const { backend_id: id } = await spawn();
  await api.change(id, (backend) => advance(assign(backend, 'node-1'), 'waiting', new Date()));
  const reading = await read(`/v2/backend/${id}/logs/stream?follow=false`);
  await reading.until('data: ');
  await api.component[Symbol.asyncDispose]();
  await expect(reading.whole).rejects.toThrow('aborted');
});

test.each(['logs', 'metrics'])('%s that a node sends: the stream ends in the same way', async (stream) => {
  const records = {
    logs: { at: '1767225600.000000000-00000000', line: 'one' },
    metrics: { backend_id: 'one', cpu_used: 1, sys_cpu: 2, mem_used: 3, mem_limit: 10, mem_available: 7 },
  };
  const record = JSON.stringify(records[stream as keyof typeof records]);
  parts.use(await openTestNode(api, (_request, response) => void response.write(`${record}\n`)));
  const { backend_id: id } = await spawn();
  await api.change(id, (backend) => advance(assign(backend, 'node-1'), 'waiting', new Date()));
  const reading = await read(`/v2/backend/${id}/${stream}/stream`);
  await reading.until('data: ');
  await api.component[Symbol.asyncDispose]();
  expect(partsOf(await reading.whole)).toEqual({ events: 1, retryMs: expect.any(Number) });
});

test('clients get different times to reconnect', async () => {
  const path = `/v2/backend/${(await spawn()).backend_id}/status/stream`;
  const streams = await Promise.all(Array.from({ length: 20 }, async () => await read(path)));
  await Promise.all(streams.map(async ({ until }) => await until('data: ')));
  await api.component[Symbol.asyncDispose]();
  const times = await Promise.all(streams.map(async ({ whole }) => partsOf(await whole).retryMs));
  expect(new Set(times).size).toBeGreaterThan(5);
});
