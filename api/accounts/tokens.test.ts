import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { accessTokens, hashToken, secretOf } from '../../model/access-token.ts';
import { connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';
import { steered } from '../../test/kit/ports/steered.ts';

let api: TestApi;
let nowMs = Date.now();
const clock = new ManualClock();
const now = () => new Date(nowMs);
beforeAll(async () => void (api = await openTestApi({ clock, storeOf: (store) => steered(store, { now }) })));
afterAll(async () => await api[Symbol.asyncDispose]());

const path = '/v2/account/acme/token';

async function create(fields: object, as?: string) {
  return await api.post(path, { name: 'ci', scopes: ['read'], ...fields }, as);
}

describe('access tokens', () => {
  test('are created, used, listed and revoked', async () => {
    const created = await create({ name: 'CI of draw', scopes: ['read', 'connect'] });
    expect(created.status).toBe(201);
    const { token, ...shown } = created.body;
    expect(token).toMatch(/^acme\.berth_pat_\w{49}$/);
    expect(shown).toEqual({
      id: hashToken(secretOf(token)).slice(0, 20),
      name: 'CI of draw',
      hint: secretOf(token).slice(0, 14),
      kind: 'access',
      scopes: ['read', 'connect'],
      services: null,
      user_email: null,
      created_at: expect.any(String),
      expires_at: null,
      revoked_at: null,
      last_used_at: null,
    });
    expect((await api.post(connectPath, {}, token)).status).toBe(200);
    expect((await api.get('/v2/service/acme/draw', secretOf(token))).status).toBe(200);
    expect((await api.post('/v2/account/acme/service', { name: 'x' }, token)).body.error.code).toBe('Forbidden');
    const listed = async () => {
      const { tokens } = (await api.get('/v2/account/acme/tokens')).body;
      return tokens.find(({ id }: { id: string }) => id === shown.id);
    };
    await expect.poll(async () => (await listed()).last_used_at).not.toBeNull();
    expect(await listed()).toEqual({ ...shown, last_used_at: expect.any(String) });
    expect((await api.post(`${path}/${shown.id}/revoke`)).body).toEqual({ status: 'ok' });
    expect((await api.post(connectPath, {}, token)).status).toBe(401);
    expect((await listed()).revoked_at).not.toBeNull();
    expect((await api.post(`${path}/${shown.id}/revoke`)).body).toEqual({ status: 'ok' });
  });

  test('are stored by their hash', async () => {
    const { token } = (await create({})).body;
    const document = await api.store.get(accessTokens, hashToken(secretOf(token)));
    expect(JSON.stringify(document)).not.toContain(secretOf(token).slice(14));
  });

  test('are valid only after the name of their own account', async () => {
    const { token } = (await create({})).body;
    for (const account of ['other', 'acme.', '', 'acme.acme']) {
      expect((await api.get('/v2/service/acme/draw', `${account}.${secretOf(token)}`)).status).toBe(401);
    }
  });

  test('allow no more than their creator', async () => {
    const creator = (await create({ scopes: ['manage', 'read'], expires_in_seconds: 3600 })).body.token;
    const within = { scopes: ['read'], expires_in_seconds: 3000 };
    expect((await create(within, creator)).status).toBe(201);
    for (const more of [
      { scopes: ['read', 'push'] },
      { expires_in_seconds: 4000 },
      { expires_in_seconds: undefined },
    ]) {
      const { status, body } = await create({ ...within, ...more }, creator);
      expect([status, body.error.code]).toEqual([403, 'Forbidden']);
    }
    const reader = (await create({})).body.token;
    expect((await create({}, reader)).status).toBe(403);
    expect((await api.get('/v2/account/acme/tokens', reader)).status).toBe(403);
  });

  test('that are limited to services cannot read or change anything else', async () => {
    await api.addService('board');
    const scopes = ['read', 'connect', 'push', 'deploy', 'manage'];
    const { token } = (await create({ scopes, services: ['board'] })).body;
    const { backend_id: other } = (await api.post(connectPath)).body;
    expect((await api.get('/v2/service/acme/board', token)).status).toBe(200);
    expect((await api.post('/v2/service/acme/board/connect', {}, token)).body.error.code).toBe('NoImage');
    expect((await api.get('/v2/service/acme/draw', token)).body.error.code).toBe('ServiceNotFound');
    expect((await api.post(connectPath, {}, token)).body.error.code).toBe('ServiceNotFound');
    expect((await api.get(`/v2/backend/${other}`, token)).body.error.code).toBe('BackendNotFound');
    expect((await api.post(`/v2/backend/${other}/terminate`, {}, token)).body.error.code).toBe('BackendNotFound');
    expect((await create({}, token)).body.error.code).toBe('Forbidden');
    expect((await api.get('/v2/account/acme/limits', token)).body.error.code).toBe('Forbidden');
  });

  test('end when they expire', async () => {
    // Permissions are cached by the machine's time.
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { token, created_at, expires_at } = (await create({ expires_in_seconds: 1 })).body;
    expect((await api.get('/v2/service/acme/draw', token)).status).toBe(200);
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(1_000);
    nowMs += 1_000;
    vi.advanceTimersByTime(1_000);
    expect((await api.get('/v2/service/acme/draw', token)).status).toBe(401);
  });

  test('end their open streams when they are revoked', async () => {
    const { token, id } = (await create({})).body;
    const { backend_id: backend } = (await api.post(connectPath)).body;
    const stream = await fetch(`${api.base}/v2/backend/${backend}/logs/stream`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(stream.status).toBe(200);
    const ended = stream.text();
    // The API reads and checks the token several times.
    await clock.advance(2_000);
    expect(await Promise.race([ended.then(() => 'ended'), Promise.resolve('open')])).toBe('open');
    await api.post(`${path}/${id}/revoke`);
    await ended;
  });

  test('of another account cannot be seen or revoked', async () => {
    const otherToken = await api.tokenFor('other', ['read', 'manage']);
    const { id } = (await create({})).body;
    expect((await api.get('/v2/account/acme/tokens', otherToken)).body.error.code).toBe('AccountNotFound');
    expect((await api.post(`${path}/${id}/revoke`, {}, otherToken)).body.error.code).toBe('AccountNotFound');
    expect((await api.post(`/v2/account/other/token/${id}/revoke`, {}, otherToken)).body.error.code).toBe(
      'TokenNotFound',
    );
  });

  test.each(['0'.repeat(20), 'x', '%00', '..%2f', 'a'.repeat(64)])('with the ID %j do not exist', async (id) => {
    expect((await api.post(`${path}/${id}/revoke`)).body.error.code).toBe('TokenNotFound');
  });

  test.each([
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(101) }],
    ['name', { name: 'a\u0000b' }],
    ['scopes', { scopes: [] }],
    ['scopes.0', { scopes: ['everything'] }],
    ['services', { services: [] }],
    ['services.0', { services: ['acme/draw'] }],
    ['expires_in_seconds', { expires_in_seconds: 0 }],
    ['expires_in_seconds', { expires_in_seconds: 1.5 }],
    ['expires_in_seconds', { expires_in_seconds: 1e9 }],
    ['user', { user: 'x' }],
  ])('are rejected with the name of the field: %s, %j', async (field, fields) => {
    const { status, body } = await create(fields);
    expect([status, body.error.code]).toEqual([400, 'BadRequest']);
    expect(body.error.message).toContain(`${field}: `);
  });
});
