import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addUser, logIn, ownPage, password } from '../testing/people.ts';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  await addUser(api, 'ada@example.com', 'acme', 'member');
});
afterAll(async () => await api[Symbol.asyncDispose]());

const json = { 'content-type': 'application/json' };

async function begin(): Promise<string> {
  const { status, body } = await api.call('POST', '/cli-login', {
    headers: { ...json, 'user-agent': 'jamsocket-cli/0.10.7 <b>' },
    body: '{}',
  });
  expect([status, Object.keys(body)]).toEqual([200, ['token']]);
  return body.token;
}

async function complete(token: string, code: string) {
  return await api.call('POST', `/cli-login/${token}/complete`, { headers: json, body: JSON.stringify({ code }) });
}

const form = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' };

async function confirm(token: string, cookie: string): Promise<string> {
  const { status, body } = await api.call('POST', `/cli-login/${token}`, { headers: { ...form, cookie } });
  expect(status).toBe(200);
  return /class="code">(\d{6})</.exec(body)?.[1] ?? '';
}

describe('the log-in of a command line', () => {
  test('is begun, confirmed in a browser, reported on the stream and completed with the code, once', async () => {
    const token = await begin();
    const stream = await fetch(`${api.base}/cli-login/${token}/status/stream`);
    const { cookie } = await logIn(api, 'ada@example.com');
    const question = await api.call('GET', `/cli-login/${token}`, { headers: { cookie, 'sec-fetch-site': 'none' } });
    expect(question.body).toContain('ada@example.com');
    expect(question.body).toContain('jamsocket-cli/0.10.7 &#60;b&#62;');
    const code = await confirm(token, cookie);
    expect((await stream.text()).match(/^data: .*/m)?.[0]).toBe('data: {"status":"ok"}');
    const completed = await complete(token, code);
    expect([completed.status, completed.body]).toEqual([
      200,
      {
        uuid: expect.stringMatching(/^[0-9a-f]{20}$/),
        user_id: 'ada@example.com',
        token: expect.stringMatching(/^berth_cli_\w{49}$/),
        user_email: 'ada@example.com',
        user_is_admin: false,
      },
    ]);
    const { token: cli, uuid } = completed.body;
    expect((await api.get('/auth', cli)).body).toEqual({ status: 'ok', accounts: ['acme'], is_admin: false });
    expect((await api.get('/v1/auth', cli)).body.accounts).toEqual(['acme']);
    expect((await api.post('/v2/service/acme/draw/connect', {}, cli)).status).toBe(200);
    expect((await complete(token, code)).body.error.code).toBe('CliLoginNotFound');
    expect((await api.post(`/user-session/${uuid}/delete`, undefined, cli)).body).toEqual({ status: 'ok' });
    expect((await api.get('/auth', cli)).status).toBe(401);
  });

  test('ends after five wrong codes, even if the sixth is right', async () => {
    const token = await begin();
    const { cookie } = await logIn(api, 'ada@example.com');
    const code = await confirm(token, cookie);
    const wrong = code === '000000' ? '000001' : '000000';
    const replies = await Promise.all(Array.from({ length: 5 }, async () => (await complete(token, wrong)).status));
    expect(replies).toEqual([403, 403, 403, 403, 403]);
    expect((await complete(token, code)).body.error.code).toBe('CliLoginNotFound');
  });

  test('cannot be completed after its user has set a new password', async () => {
    await addUser(api, 'bob@example.com', 'acme', 'member');
    const token = await begin();
    const browser = await logIn(api, 'bob@example.com');
    const code = await confirm(token, browser.cookie);
    await browser.post('/v2/user/password', { current_password: password, new_password: 'another good password' });
    expect((await complete(token, code)).body.error.code).toBe('CliLoginNotFound');
  });

  test('cannot be completed before it was confirmed', async () => {
    const token = await begin();
    expect((await complete(token, '')).status).toBe(403);
    expect((await complete(token, '000000')).status).toBe(403);
  });

  test('cannot be confirmed by a page of another site, nor without a session', async () => {
    const token = await begin();
    const { cookie } = await logIn(api, 'ada@example.com');
    for (const site of ['cross-site', 'same-site', 'none']) {
      const headers = { ...form, cookie, 'sec-fetch-site': site };
      expect((await api.call('POST', `/cli-login/${token}`, { headers })).status).toBe(403);
    }
    expect((await api.call('POST', `/cli-login/${token}`, { headers: form })).status).toBe(401);
    const page = await api.call('GET', `/cli-login/${token}`);
    expect([page.status, page.headers.get('location')]).toEqual([303, `/login?next=%2Fcli-login%2F${token}`]);
  });

  test.each(['x', 'a'.repeat(43), '%00', '..%2f..'])('with the token %j does not exist', async (token) => {
    expect((await complete(token, '000000')).body.error.code).toBe('CliLoginNotFound');
    expect((await api.call('GET', `/cli-login/${token}/status/stream`)).status).toBe(404);
  });
});

describe('the log-in page', () => {
  const send = async (path: string, fields: Record<string, string>, headers = {}) =>
    await api.call('POST', path, { headers: { ...form, ...headers }, body: new URLSearchParams(fields).toString() });

  test('logs in with a form, and redirects only to our own pages', async () => {
    const next = `/cli-login/${'a'.repeat(43)}`;
    const page = await api.call('GET', `/login?next=${encodeURIComponent(next)}`);
    expect(page.body).toContain(`value="${next}"`);
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    const fields = { user_email: 'ada@example.com', password };
    const reply = await send('/login', { ...fields, next });
    expect([reply.status, reply.headers.get('location')]).toEqual([303, next]);
    expect(reply.headers.get('set-cookie')).toContain('__Host-berth-session=');
    for (const elsewhere of ['https://evil.example', '//evil.example', '/cli-login/../x', `${next}/../x`]) {
      const { status, headers } = await send('/login', { ...fields, next: elsewhere });
      expect([status, headers.get('location')]).toEqual([303, '/login']);
      expect((await api.call('GET', `/login?next=${encodeURIComponent(elsewhere)}`)).body).not.toContain('name="next"');
    }
  });

  test('shows what is wrong, and sets no cookie', async () => {
    const reply = await send('/login', { user_email: 'ada@example.com', password: 'wrong' });
    expect([reply.status, reply.headers.get('set-cookie')]).toEqual([401, null]);
    expect(reply.body).toContain('The e-mail address or the password is wrong');
    expect((await send('/login', { user_email: '<script>', password })).body).not.toContain('<script>');
    const unknownField = await send('/setup', { user_email: 'ada@example.com', password, code: 'x', more: 'y' });
    expect([unknownField.status, unknownField.body]).toEqual([
      400,
      expect.stringContaining('more: There is no such field'),
    ]);
  });

  test('rejects a form of another site, JSON and a body that is too large', async () => {
    const fields = { user_email: 'ada@example.com', password };
    expect((await send('/login', fields, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await api.call('POST', '/login', { headers: ownPage, body: JSON.stringify(fields) })).status).toBe(415);
    expect((await send('/login', { ...fields, more: 'x'.repeat(10_000) })).status).toBe(413);
  });
});
