import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectPath, digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('services', () => {
  test('are created once, listed by name and shown', async () => {
    expect((await api.post('/v2/account/acme/service', { name: 'board' })).body).toEqual({ status: 'ok' });
    const again = await api.post('/v2/account/acme/service', { name: 'board' });
    expect([again.status, again.body.error.code]).toEqual([409, 'ServiceExists']);
    expect((await api.get('/v2/account/acme/services')).body.services).toContain('board');
    expect((await api.get('/v2/service/acme/board')).body).toEqual({
      account_name: 'acme',
      created_at: expect.any(String),
      environments: [
        {
          cluster: 'main',
          created_at: expect.any(String),
          image_tag: 'latest',
          last_spawned_at: null,
          name: 'default',
        },
      ],
      image_name: 'registry.example/acme/board',
      last_image_digest: null,
      last_image_upload_time: null,
      last_spawned_at: null,
      name: 'board',
    });
  });

  test.each(['', 'A', '-a', 'a..b', '../b', 'a/b', 'x'.repeat(64)])('cannot be named %j', async (name) => {
    expect((await api.post('/v2/account/acme/service', { name })).status).toBe(400);
  });

  test('spawn the image that update sets, unless a connect request names another', async () => {
    await api.addImage('acme/draw', 'v2', digestOf('c'));
    expect((await api.post('/v2/service/acme/draw/update', { image_tag: 'v2' })).body).toEqual({ status: 'ok' });
    const spawned = async (body?: unknown) => {
      const { backend_id: id } = (await api.post(connectPath, body)).body;
      return (await api.get(`/v2/backend/${id}`)).body.image_digest;
    };
    expect(await spawned()).toBe(digestOf('c'));
    expect(await spawned({ spawn: { tag: 'latest' } })).toBe(digestOf('a'));
    const unknown = await api.post('/v2/service/acme/draw/update', { image_tag: 'nope' });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'ImageNotFound']);
  });

  test('are private until a token with the scope makes them public', async () => {
    const path = '/v2/service/acme/draw/visibility';
    expect((await api.get(path)).body).toEqual({ public: false });
    expect((await api.post(path, { public: true })).body).toEqual({ status: 'ok' });
    expect((await api.get(path)).body).toEqual({ public: true });
    expect((await api.get('/v2/service/acme/draw')).body).not.toHaveProperty('public');
    const pusher = await api.tokenFor('acme', ['read', 'push', 'connect']);
    expect((await api.post(path, { public: false }, pusher)).body.error.code).toBe('Forbidden');
    const otherToken = await api.tokenFor('other', ['read', 'push', 'deploy', 'connect', 'manage']);
    expect((await api.post(path, { public: false }, otherToken)).body.error.code).toBe('ServiceNotFound');
    expect((await api.get(path, otherToken)).body.error.code).toBe('ServiceNotFound');
    for (const body of [{}, { public: 'yes' }, { public: true, more: 1 }]) {
      expect((await api.post(path, body)).status).toBe(400);
    }
    expect((await api.get(path)).body).toEqual({ public: true });
    await api.post(path, { public: false });
    expect((await api.get(path)).body).toEqual({ public: false });
  });

  test('list their images, newest first', async () => {
    await api.addImage('acme/draw', 'v3', digestOf('d'));
    const { images: shown } = (await api.get('/v2/service/acme/draw/images')).body;
    expect(shown[0]).toEqual({
      digest: digestOf('d'),
      repository: 'acme/draw',
      tag: 'v3',
      upload_time: expect.any(String),
    });
    expect(shown.length).toBeGreaterThan(1);
  });
});
