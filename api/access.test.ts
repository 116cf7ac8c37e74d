import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessTokens, hashToken, newSecret } from '../model/access-token.ts';
import { connectPath, openTestApi } from './testing/test-api.ts';
import type { Reply, TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('access', () => {
  test('a missing, malformed, unknown or revoked token is 401 with a challenge', async () => {
    const unknown = newSecret('access');
    const revoked = await api.tokenFor('acme', ['connect']);
    await api.store.update(accessTokens, hashToken(revoked), (current) => ({ ...current, revokedAt: new Date() }));
    for (const authorization of ['', 'Basic eDp5', 'Bearer x', `Bearer ${unknown}`, `Bearer ${revoked}`]) {
      const { status, headers, body } = await api.call('POST', connectPath, { headers: { authorization } });
      expect([status, body.error.code, headers.get('www-authenticate')]).toEqual([401, 'Unauthorized', 'Bearer']);
      expect(body.error).toEqual({
        code: 'Unauthorized',
        message: expect.any(String),
        status: 401,
        id: headers.get('x-request-id'),
      });
    }
  });

  test('a token without the scope is 403', async () => {
    const reader = await api.tokenFor('acme', ['read']);
    expect((await api.post(connectPath, {}, reader)).status).toBe(403);
    expect((await api.post('/v2/account/acme/service', { name: 'x' }, reader)).status).toBe(403);
    expect((await api.get('/v2/service/acme/draw', reader)).status).toBe(200);
  });

  test('resources of another account are reported as absent, in the same words', async () => {
    const otherToken = await api.tokenFor('other', ['read', 'push', 'deploy', 'connect', 'manage']);
    const { backend_id: id } = (await api.post(connectPath)).body;
    const absent = id.replace(/^./, (first: string) => (first === 'a' ? 'b' : 'a'));
    const shape = ({ status, body }: Reply, name: string) => [
      status,
      body.error.code,
      body.error.message.replaceAll(name, '*'),
    ];
    expect(shape(await api.get(`/v2/backend/${id}`, otherToken), id)).toEqual(
      shape(await api.get(`/v2/backend/${absent}`), absent),
    );
    expect(shape(await api.post(`/v2/backend/${id}/terminate`, {}, otherToken), id)).toEqual(
      shape(await api.post(`/v2/backend/${absent}/terminate`), absent),
    );
    expect(shape(await api.get('/v2/service/acme/draw', otherToken), 'draw')).toEqual(
      shape(await api.get('/v2/service/acme/nope', otherToken), 'nope'),
    );
  });
});
