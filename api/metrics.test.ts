import { afterAll, beforeAll, expect, test } from 'vitest';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { EventEmitter } from 'node:events';
import { silentLog } from '../core/log/log.ts';
import type { Log } from '../core/log/log.ts';
import { openMetrics } from '../core/metrics/metrics.ts';
import { requestRecorder } from './metrics.ts';
import { connectPath, openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

test('requests are counted by method, path of the endpoint and status, without the values in the path', async () => {
  const { backend_id: id, ready_url: ready } = (await api.post(connectPath)).body;
  await api.get(`/v2/backend/${id}/status`);
  await api.get('/v2/backend/nothing00000/status');
  await api.get('/nowhere/at/all');
  await api.get(new URL(ready).pathname);
  const count = async (labels: string) =>
    new RegExp(String.raw`berth_api_request_duration_seconds_count\{${labels}\} (\d+)`).exec(
      await api.metrics.metrics(),
    )?.[1];
  const status = 'method="GET",endpoint="/v2/backend/:backend_id/status"';
  await expect.poll(async () => await count(`${status},status="200"`)).toBe('1');
  await expect.poll(async () => await count(`${status},status="404"`)).toBe('1');
  await expect.poll(async () => await count('method="GET",endpoint="none",status="404"')).toBe('1');
  await expect.poll(async () => await count('method="GET",endpoint="/ready/:backend/:token",status="200"')).toBe('1');
  expect(await api.metrics.metrics()).not.toContain(id);
});

test('the access log has a line for each answer, with the ID of the request and no value of the path', () => {
  const lines: object[] = [];
  const log = Object.assign(Object.create(silentLog()) as Log, { info: (fields: object) => void lines.push(fields) });
  const request = { method: 'GET', url: '/v2/backend/secret/status' } as IncomingMessage;
  const response = Object.assign(new EventEmitter(), { statusCode: 200 }) as unknown as ServerResponse;
  requestRecorder(log, openMetrics())(request, response).endpoint = '/v2/backend/:backend_id/status';
  response.emit('close');
  expect(lines).toEqual([
    {
      request: expect.stringMatching(/^[\da-f-]{36}$/),
      method: 'GET',
      endpoint: '/v2/backend/:backend_id/status',
      status: '200',
      durationMs: expect.any(Number),
    },
  ]);
});

test('every answer has a new ID, whatever the client sends', async () => {
  const { backend_id: id, ready_url: ready } = (await api.post(connectPath)).body;
  const headers = { authorization: `Bearer ${api.token}`, 'x-request-id': 'mine' };
  const ids = await Promise.all(
    [
      ['POST', connectPath],
      ['GET', `/v2/backend/${id}/status`],
      ['HEAD', `/v2/backend/${id}/status`],
      ['OPTIONS', `/v2/backend/${id}/status`],
      ['PUT', `/v2/backend/${id}/status`],
      ['GET', '/v2/backend/%zz/status'],
      ['GET', '/nowhere'],
      ['GET', new URL(ready).pathname],
      ['GET', '/openapi.json'],
      ['GET', '/login'],
    ].map(async ([method = '', path = '']) => {
      const response = await fetch(api.base + path, { method, headers });
      await response.text();
      return response.headers.get('x-request-id');
    }),
  );
  for (const each of ids) expect(each).toMatch(/^[\da-f-]{36}$/);
  expect(new Set(ids).size).toBe(ids.length);
});
