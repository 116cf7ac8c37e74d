import { once } from 'node:events';
import { request } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { connectPath, openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

const mib = 1024 * 1024;

let clock: ManualClock;
let api: TestApi;
const open: ClientRequest[] = [];
beforeEach(async () => {
  clock = new ManualClock(new Date());
  api = await openTestApi({ clock, behindLoadBalancer: true });
});
afterEach(async () => {
  for (const client of open.splice(0)) client.destroy();
  await api[Symbol.asyncDispose]();
});

interface Options {
  readonly token?: string;
  readonly path?: string;
  readonly method?: string;
  readonly announced?: number;
  /** The address of the client. */
  readonly from?: string;
}

/** Begins a request and sends a part of its body. The result is the status and the error code of the response. */
function begin(bytes: number, options: Options = {}) {
  const { token, path = connectPath, method = 'POST', announced = mib, from = '192.0.2.1' } = options;
  const headers = {
    'content-type': 'application/json',
    'x-forwarded-for': from,
    'content-length': announced,
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const client = request({ port: api.port, path, method, headers, agent: false });
  client.on('error', () => {});
  open.push(client);
  client.flushHeaders();
  if (bytes > 0) client.write(Buffer.alloc(bytes, ' '));
  const answer = once(client, 'response').then(async ([response]: IncomingMessage[]) => {
    if (!response) throw new Error('There is no answer');
    const { error } = (await json(response)) as { error: { code: string } };
    return [response.statusCode, error.code] as const;
  });
  return { client, answer };
}

describe('a body that is sent only in part', () => {
  test('is not awaited without a token, or with a token that lacks the scope', async () => {
    const reader = await api.tokenFor('acme', ['read']);
    const [anonymous, known] = [begin(mib - 100), begin(mib - 100, { token: reader })];
    expect(await anonymous.answer).toEqual([401, 'Unauthorized']);
    expect(await known.answer).toEqual([403, 'Forbidden']);
  });

  test('is awaited for a limited time', async () => {
    const { answer } = begin(100, { token: api.token });
    const settled = answer.catch((error: unknown) => error);
    let isAnswered = false;
    void settled.then(() => (isAnswered = true));
    await expect
      .poll(async () => {
        await clock.advance(5_000);
        return isAnswered;
      })
      .toBe(true);
    expect(await settled).toEqual([408, 'RequestTimeout']);
  });

  test('uses a limited amount of memory per account, and does not block other accounts', async () => {
    const { token } = api;
    const stalled = Array.from({ length: 12 }, () => begin(mib - 100, { token }));
    expect(await Promise.race(stalled.map(({ answer }) => answer))).toEqual([429, 'TooManyRequests']);
    const other = await api.tokenFor('other', ['connect']);
    const { body } = await api.post('/v2/service/other/draw/connect', { user: 'x'.repeat(900) }, other);
    expect(body.error.code).toBe('ServiceNotFound');
    for (const { client } of stalled) client.destroy();
    // A body of the full size fits only after the others have ended.
    const whole = { auth: { a: 'x'.repeat(mib - 100) } };
    await expect.poll(async () => (await api.post(connectPath, whole)).status).toBe(400);
  });
});

test('log-ins that are sent only in part from one network do not block those of other networks', async () => {
  const path = '/v2/session';
  const bytes = 16 * 1024 - 1;
  const stalled = Array.from({ length: 520 }, () => begin(bytes, { path, announced: bytes + 1 }));
  expect(await Promise.race(stalled.map(({ answer }) => answer))).toEqual([429, 'TooManyRequests']);
  // Its body comes after the server has begun to read, so that it uses the memory.
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': '192.0.2.2', expect: '100-continue' };
  const other = request({ port: api.port, path, method: 'POST', headers, agent: false });
  open.push(other);
  other.flushHeaders();
  await once(other, 'continue');
  other.end(Buffer.alloc(bytes, ' '));
  const [{ statusCode }] = (await once(other, 'response')) as [IncomingMessage];
  expect(statusCode).toBe(400);
});

test('a request that needs no body may send only a small one', async () => {
  const { backend_id: id } = (await api.post(connectPath)).body;
  const path = `/v2/backend/${id}/status`;
  expect(await begin(0, { path, method: 'GET' }).answer).toEqual([413, 'PayloadTooLarge']);
  expect(await begin(0, { path: `/v2/backend/${id}`, method: 'GET', token: api.token }).answer).toEqual([
    413,
    'PayloadTooLarge',
  ]);
});
