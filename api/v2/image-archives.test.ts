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

  test('missing rights are reported before any other problem', async () => {
    const [reader, pusher] = [await api.tokenFor('acme', ['read']), await api.tokenFor('acme', ['push'])];
    const otherToken = await api.tokenFor('other', ['read', 'push']);
    const archive = `${path}/${digestOf('a')}/archive`;
    expect((await send(reader)).body.error.code).toBe('Forbidden');
    expect((await api.get(archive, pusher)).body.error.code).toBe('Forbidden');
    expect((await send(otherToken)).body.error.code).toBe('ServiceNotFound');
    expect((await api.get(archive, otherToken)).body.error.code).toBe('ServiceNotFound');
  });

  test('a process that cannot read images returns an error that says what to do', async () => {
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
