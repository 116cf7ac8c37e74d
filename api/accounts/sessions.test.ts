// Takes about 4 s
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { upsert } from '../../core/store/upsert.ts';
import { attemptBuckets } from '../../model/attempts.ts';
import { addSetupCode, setUp } from '../../model/setup.ts';
import { users, withPassword } from '../../model/user.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { addAdmin, addUser, logIn, ownPage, password } from '../testing/people.ts';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  await addUser(api, 'ada@example.com', 'acme', 'member');
});
afterAll(async () => await api[Symbol.asyncDispose]());

async function tryLogIn(on: TestApi, email: string, given: string, headers: Record<string, string> = {}) {
  const body = JSON.stringify({ user_email: email, password: given });
  return await on.call('POST', '/v2/session', { headers: { ...ownPage, ...headers }, body });
}

describe('sessions', () => {
  test('set a cookie that only this host gets, with which the browser acts for its user', async () => {
    const { status, headers, body } = await tryLogIn(api, 'Ada@Example.com', password);
    expect([status, body]).toEqual([
      200,
      {
        uuid: expect.stringMatching(/^[0-9a-f]{20}$/),
        user_email: 'ada@example.com',
        user_is_admin: false,
        accounts: ['acme'],
        expires_at: expect.any(String),
      },
    ]);
    const [session, device] = headers.getSetCookie();
    expect(session).toMatch(
      /^__Host-berth-session=berth_ses_\w{49}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=1209600$/,
    );
    expect(device).toMatch(
      /^__Host-berth-device=[\w.-]{66}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=31536000$/,
    );
    const browser = await logIn(api, 'ada@example.com');
    expect((await browser.get('/auth')).body).toEqual({ status: 'ok', accounts: ['acme'], is_admin: false });
    expect((await browser.post('/v2/account/acme/service', { name: 'ada' })).status).toBe(200);
  });

  test('have a new secret after each log-in, and the previous session ends', async () => {
    const first = await logIn(api, 'ada@example.com');
    const again = await tryLogIn(api, 'ada@example.com', password, { cookie: first.cookie });
    expect(again.headers.get('set-cookie')).not.toContain(first.cookie);
    expect((await first.get('/auth')).status).toBe(401);
  });

  test('do not work as access tokens, nor access tokens as cookies', async () => {
    const { cookie } = await logIn(api, 'ada@example.com');
    const [name, secret = ''] = cookie.split('=');
    expect((await api.get('/auth', secret)).status).toBe(401);
    expect((await api.call('GET', '/auth', { headers: { ...ownPage, cookie: `${name}=${api.token}` } })).status).toBe(
      401,
    );
  });

  test('end when the user logs out', async () => {
    const browser = await logIn(api, 'ada@example.com');
    const { uuid } = (await tryLogIn(api, 'ada@example.com', password)).body;
    expect((await browser.post(`/user-session/${uuid}/delete`)).body).toEqual({ status: 'ok' });
    expect((await browser.post(`/user-session/${uuid.replaceAll(/./g, '0')}/delete`)).body.error.code).toBe(
      'TokenNotFound',
    );
    await addUser(api, 'eve@example.com', 'acme', 'owner');
    const { uuid: own } = (await tryLogIn(api, 'ada@example.com', password)).body;
    const eve = await logIn(api, 'eve@example.com');
    expect((await eve.post(`/user-session/${own}/delete`)).body.error.code).toBe('TokenNotFound');
  });

  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['a session on a sibling host', { 'sec-fetch-site': 'same-site' }],
    ['another origin, in an old browser', { 'sec-fetch-site': '', origin: 'https://evil.example' }],
    ['a page without an origin', { 'sec-fetch-site': '', origin: 'null' }],
    ['a client that names no origin', { 'sec-fetch-site': 'none' }],
  ])('reject a change that %s sends', async (_name, headers) => {
    const browser = await logIn(api, 'ada@example.com');
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
    const reply = await api.call('POST', '/v2/account/acme/service', {
      headers: { 'content-type': 'application/json', cookie: browser.cookie, ...sent },
      body: '{"name":"x1"}',
    });
    expect([reply.status, reply.body.error.code]).toEqual([403, 'Forbidden']);
  });

  test('accept a change of our own origin in a browser without Sec-Fetch-Site', async () => {
    const browser = await logIn(api, 'ada@example.com');
    const reply = await api.call('POST', '/v2/account/acme/service', {
      headers: { 'content-type': 'application/json', cookie: browser.cookie, origin: api.base },
      body: '{"name":"x2"}',
    });
    expect(reply.status).toBe(200);
  });

  test('cannot be begun by a page of another site', async () => {
    expect((await tryLogIn(api, 'ada@example.com', password, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    const preflight = await api.call('OPTIONS', '/v2/session');
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('end when the user sets a new password, which requires the old one', async () => {
    await addUser(api, 'bob@example.com', 'acme', 'viewer');
    const browser = await logIn(api, 'bob@example.com');
    const change = async (current_password: string, new_password: string) =>
      await browser.post('/v2/user/password', { current_password, new_password });
    expect((await change('wrong', 'another good password')).status).toBe(401);
    expect((await change(password, 'too short')).body.error.message).toContain('new_password: Too short');
    expect((await change(password, 'another good password')).body).toEqual({ status: 'ok' });
    expect((await browser.get('/auth')).status).toBe(401);
    expect((await tryLogIn(api, 'bob@example.com', password)).status).toBe(401);
    expect((await tryLogIn(api, 'bob@example.com', 'another good password')).status).toBe(200);
  });
});

test('a log-in that is being checked while the user sets a new password fails', async () => {
  let meanwhile: (() => Promise<unknown>) | undefined;
  await using changing = await openTestApi({
    storeOf: (store) =>
      steered(store, {
        onCall: async ({ method, collection, run }) => {
          const result = await run();
          const change = `${method} ${collection}` === 'get users' ? meanwhile : undefined;
          if (change) meanwhile = undefined;
          await change?.();
          return result;
        },
      }),
  });
  await addUser(changing, 'ada@example.com', 'acme', 'member');
  meanwhile = async () =>
    await changing.store.update(users, 'ada@example.com', (user) => withPassword(user, 'x', new Date()));
  const reply = await tryLogIn(changing, 'ada@example.com', password);
  expect([reply.status, reply.headers.get('set-cookie')]).toEqual([401, null]);
});

describe('failed log-ins', () => {
  test('get the same answer whether the user exists or not', async () => {
    const wrong = await tryLogIn(api, 'ada@example.com', 'wrong');
    const unknown = await tryLogIn(api, 'nobody@example.com', 'wrong');
    expect([wrong.status, wrong.body.error.message]).toEqual([unknown.status, unknown.body.error.message]);
    expect(wrong.status).toBe(401);
  });

  test('are limited across processes, also concurrent ones, and the right password must wait, too', async () => {
    await using other = await openTestApi();
    await addUser(other, 'ada@example.com', 'acme', 'member');
    const replies = await Promise.all(Array.from({ length: 14 }, () => tryLogIn(other, 'ada@example.com', 'wrong')));
    expect(replies.filter(({ status }) => status === 401)).toHaveLength(10);
    const refused = await tryLogIn(other, 'ada@example.com', password);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'TooManyRequests']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(30);
  });

  test('from many networks do not lock the user out of a browser in which the user has logged in before', async () => {
    await using other = await openTestApi({ behindLoadBalancer: true });
    for (const name of ['ada', 'eve']) await addUser(other, `${name}@example.com`, 'acme', 'member');
    const at = (address: string) => ({ 'x-forwarded-for': address });
    const deviceOf = async (email: string) =>
      (await tryLogIn(other, email, password, at('192.0.2.1'))).headers.getSetCookie()[1]?.split(';')[0] ?? '';
    const [ada, eve] = [await deviceOf('ada@example.com'), await deviceOf('eve@example.com')];
    await upsert(other.store, attemptBuckets, 'log-in of ada@example.com', () =>
      exhausted('log-in of ada@example.com'),
    );
    const tryAs = async (cookie: string, given = password) =>
      (await tryLogIn(other, 'ada@example.com', given, { ...at('192.0.2.1'), cookie })).status;
    expect(await tryAs('')).toBe(429);
    expect(await tryAs(eve)).toBe(429);
    expect(await tryAs(ada.replace('=', '=x'))).toBe(429);
    expect(await tryAs(ada)).toBe(200);
    expect(await tryAs(ada, 'wrong')).toBe(401);
    const ofDevice = `log-in device ${/=([\w-]+)/.exec(ada)?.[1]}`;
    expect((await other.store.get(attemptBuckets, ofDevice))?.left).toBeCloseTo(9, 0);
    await other.store.update(attemptBuckets, ofDevice, () => exhausted(ofDevice));
    expect(await tryAs(ada)).toBe(429);
  });

  test('are counted without successful log-ins', async () => {
    for (let i = 0; i < 12; i += 1) expect((await tryLogIn(api, 'eve@example.com', password)).status).toBe(200);
  });
});

/** The bucket after 100 failed log-ins. */
function exhausted(id: string) {
  return { id, left: 0, at: new Date(), endsAt: new Date(Date.now() + 3_600_000) };
}

describe('the first administrator', () => {
  test('is created once with the set-up code, by one of two concurrent requests', async () => {
    await using fresh = await openTestApi();
    await addSetupCode(fresh.store, 'aaaaa-bbbbb', 'acme');
    const send = async (email: string, code: string) => {
      const body = JSON.stringify({ code, user_email: email, password });
      return (await fresh.call('POST', '/v2/setup', { headers: ownPage, body })).status;
    };
    expect(await send('eve@example.com', 'aaaaa-bbbbc')).toBe(403);
    const statuses = await Promise.all([send('a@example.com', 'AAAAA BBBBB'), send('b@example.com', 'aaaaabbbbb')]);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 403]);
    expect(await send('c@example.com', 'aaaaa-bbbbb')).toBe(403);
    const [admin, ...others] = await fresh.store.find(users, { index: 'byAdmin', equals: { isAdmin: true } });
    expect(others).toEqual([]);
    const browser = await logIn(fresh, admin?.id ?? '');
    expect((await browser.get('/auth')).body).toEqual({ status: 'ok', accounts: ['acme'], is_admin: true });
  });

  test('cannot be created with a code if an administrator exists', async () => {
    await using fresh = await openTestApi();
    await addAdmin(fresh, 'root@example.com', 'acme');
    await addSetupCode(fresh.store, 'ccccc', 'acme');
    const claim = { email: 'eve@example.com', passwordHash: 'x' };
    await expect(setUp(fresh.store, 'ccccc', claim)).rejects.toMatchObject({ code: 'Forbidden' });
  });
});
