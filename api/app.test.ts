import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectPath, openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('bodies', () => {
  const send = async (body: string | Uint8Array<ArrayBuffer>, type = 'application/json') =>
    await api.call('POST', connectPath, {
      body,
      headers: { authorization: `Bearer ${api.token}`, 'content-type': type },
    });

  test.each([
    ['not JSON', '{"key":', 400],
    ['cut in the middle of a character', Buffer.from('{"key":"é"}').subarray(0, 9), 400],
    [
      'invalid UTF-8 inside a text',
      Buffer.from([0x7b, 0x22, 0x6b, 0x65, 0x79, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
      400,
    ],
    ['nested deeper than any request', `{"auth":{"a":${'['.repeat(200)}${']'.repeat(200)}}}`, 400],
    ['larger than 1 MiB', `{"user":"${'x'.repeat(1 << 20)}"}`, 413],
  ])('%s', async (_what, body, status) => {
    expect((await send(body)).status).toBe(status);
  });

  test('of another type are rejected', async () => {
    const { status, body } = await send('{}', 'text/plain');
    expect([status, body.error.code]).toEqual([415, 'UnsupportedMediaType']);
  });

  test('may be absent if all fields are optional, with and without a content type', async () => {
    const bare = await api.call('POST', connectPath, { headers: { authorization: `Bearer ${api.token}` } });
    expect([bare.status, (await send('')).status]).toEqual([200, 200]);
  });
});

test('an unknown path is 404 in JSON', async () => {
  const { status, body } = await api.get('/v2/nothing');
  expect([status, body.error.code]).toEqual([404, 'NotFound']);
});

test('an unsupported method is rejected with the methods that the path supports', async () => {
  for (const [method, path, allow] of [
    ['DELETE', connectPath, 'POST'],
    ['POST', '/v2/backend/abc/status', 'GET, HEAD, OPTIONS'],
    ['PUT', '/v2/service/acme/draw/images', 'GET, HEAD, POST'],
    ['PUT', '/v2/service/acme/draw/images/', 'GET, HEAD, POST'],
    ['GET', '/token/abc/spawn', 'OPTIONS, POST'],
  ] as const) {
    const { status, headers, body } = await api.call(method, path);
    expect([status, headers.get('allow'), body.error.code]).toEqual([405, allow, 'MethodNotAllowed']);
  }
});

describe('a target with a host', () => {
  const ask = async (target: string) => {
    const headers = { authorization: `Bearer ${api.token}`, host: 'other.example' };
    const client = request({ port: api.port, path: target, headers, agent: false }).end();
    const [response] = (await once(client, 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };

  test.each([
    ['an endpoint', 'http://api.example/v2/service/acme/draw/backends?limit=1', 200],
    ['a page', 'HTTP://api.example/openapi.json', 200],
    ['no endpoint', 'http://api.example/v2/nothing', 404],
    ['a user', 'http://user@api.example/v2/service/acme/draw', 400],
    ['another scheme', 'ftp://api.example/v2/service/acme/draw', 400],
  ])('names %s: %s', async (_what, target, status) => {
    expect(await ask(target)).toBe(status);
  });
});
