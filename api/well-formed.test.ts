import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backends } from '../model/backend.ts';
import { keyId, keys } from '../model/key.ts';
import { connectPath, openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi({ rules: { mountsEnabled: true } })));
afterAll(async () => await api[Symbol.asyncDispose]());

const half = '\ud800';

describe('a text that is not well-formed', () => {
  test.each([
    ['user', { user: half }],
    ['auth.a.0.b', { auth: { a: [{ b: half }] } }],
    ['auth.', { auth: { [half]: 1 } }],
    ['spawn.tag', { spawn: { tag: half } }],
    ['spawn.cluster', { spawn: { cluster: half } }],
    ['spawn.executable.mount', { spawn: { executable: { mount: half } } }],
    ['spawn.executable.env.A', { spawn: { executable: { env: { A: half } } } }],
    ['spawn.executable.env.', { spawn: { executable: { env: { [half]: 'a' } } } }],
    ['', { [half]: 1 }],
  ])('in a connect request is rejected with its field (%s) before anything is written', async (field, body) => {
    const key = `key of ${field}`;
    const { status, body: answer } = await api.post(connectPath, { key, ...body });
    expect([status, answer.error.message]).toEqual([400, expect.stringContaining(field)]);
    expect(answer.error.message).toContain('Not well-formed');
    expect(await api.store.get(keys, keyId('acme', 'draw', key))).toBeUndefined();
    expect(await api.store.find(backends, { index: 'byAccount', equals: { account: 'acme' } })).toEqual([]);
  });

  test.each([
    ['POST', connectPath, { key: half }, 'key: '],
    ['POST', '/v2/account/acme/service', { name: half }, 'name: '],
    ['POST', '/v2/service/acme/draw/update', { image_tag: half }, 'image_tag: '],
    ['POST', '/v2/service/acme/%ff/connect', {}, 'path: '],
    ['GET', '/v2/backend/%ED%A0%80/status', undefined, 'path: '],
    ['GET', '/v2/backend/%ED%A0%80/status/stream', undefined, 'path: '],
    ['GET', `/ready/abcdefghijkl/${'x'.repeat(43)}%ff/`, undefined, 'path: '],
  ])('is rejected by %s %s', async (method, path, body, problem) => {
    const { status, body: answer } = await (method === 'GET' ? api.get(path) : api.post(path, body));
    expect([status, answer.error.message]).toEqual([400, expect.stringContaining(problem)]);
  });
});
