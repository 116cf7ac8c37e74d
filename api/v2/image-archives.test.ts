import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('image archives', () => {
  const path = '/v2/service/acme/draw/images';
  const send = async (as: string, target = path) =>
    await api.call('POST', target, {
      headers: { authorization: `Bearer ${as}`, 'content-type': 'application/x-tar' },
      body: 'an archive',
    });

  test('who may not push or read is told so before anything else', async () => {
    const [reader, pusher] = [await api.tokenFor('acme', ['read']), await api.tokenFor('acme', ['push'])];
    const stranger = await api.tokenFor('other', ['read', 'push']);
    const archive = `${path}/${digestOf('a')}/archive`;
    expect((await send(reader)).body.error.code).toBe('Forbidden');
    expect((await api.get(archive, pusher)).body.error.code).toBe('Forbidden');
    expect((await send(stranger)).body.error.code).toBe('ServiceNotFound');
    expect((await api.get(archive, stranger)).body.error.code).toBe('ServiceNotFound');
  });

  test('a process that cannot reach the bytes of images says what to do', async () => {
    const replies = [await send(api.token), await api.get(`${path}/${digestOf('a')}/archive`)];
    for (const { status, body } of replies) {
      expect([status, body.error.code, body.error.message]).toEqual([
        501,
        'ImagesElsewhere',
        expect.stringContaining('BERTH_BLOBS=gridfs'),
      ]);
    }
  });
});
