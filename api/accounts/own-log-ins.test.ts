import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessTokenDocument, accessTokens, newSecret, publicTokenId } from '../../model/access-token.ts';
import { users } from '../../model/user.ts';
import { addUser, logIn } from '../testing/people.ts';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

const path = '/v2/user/logins';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  for (const name of ['ada', 'eve']) await addUser(api, `${name}@example.com`, 'acme', 'member');
});
afterAll(async () => await api[Symbol.asyncDispose]());

/** Adds a completed log-in of a command line. */
async function addCommandLine(user: string, fields: { expiresAt?: Date; createdAt?: Date; passwordSetAt?: Date } = {}) {
  const { createdAt = new Date(), ...rest } = fields;
  const { passwordSetAt = createdAt } = (await api.store.get(users, user)) ?? {};
  const secret = newSecret('cli');
  const about = { kind: 'cli', user, name: 'jamsocket-cli/0.10.7', scopes: ['read'], passwordSetAt, ...rest } as const;
  const document = accessTokenDocument(secret, about, createdAt);
  await api.store.insert(accessTokens, document);
  return { secret, uuid: publicTokenId(document) };
}

test('a user lists the open log-ins, newest first, without those of other users', async () => {
  const browser = await logIn(api, 'ada@example.com');
  await logIn(api, 'eve@example.com');
  const day = 86_400_000;
  await addCommandLine('ada@example.com', { createdAt: new Date(Date.now() - 5), expiresAt: new Date(Date.now() - 1) });
  await addCommandLine('ada@example.com', { passwordSetAt: new Date(Date.now() - day) });
  const { uuid } = await addCommandLine('ada@example.com', { createdAt: new Date(Date.now() + 1) });
  const { status, body } = await browser.get(path);
  const times = { created_at: expect.any(String), last_used_at: null };
  const commandLine = {
    uuid,
    kind: 'command-line',
    program: 'jamsocket-cli/0.10.7',
    is_current: false,
    expires_at: null,
  };
  const own = {
    uuid: expect.stringMatching(/^[0-9a-f]{20}$/),
    kind: 'browser',
    program: 'node',
    is_current: true,
    created_at: expect.any(String),
    last_used_at: expect.toSatisfy((time) => time === null || typeof time === 'string'),
    expires_at: expect.any(String),
  };
  expect([status, body]).toEqual([200, { log_ins: [{ ...commandLine, ...times }, own] }]);
  const [first, second] = [await browser.get(`${path}?limit=1`), await browser.get(path)];
  const next = await browser.get(`${path}?limit=1&cursor=${first.body.next_cursor}`);
  expect([...first.body.log_ins, ...next.body.log_ins].map((each) => each.uuid)).toEqual(
    second.body.log_ins.map((each: { uuid: string }) => each.uuid),
  );
});

test('a user ends one log-in, or all others, which takes effect at once', async () => {
  const [here, there] = [await logIn(api, 'ada@example.com'), await logIn(api, 'ada@example.com')];
  const eve = await logIn(api, 'eve@example.com');
  const commandLine = await addCommandLine('ada@example.com');
  const { uuid } = commandLine;
  expect((await eve.post(`/user-session/${uuid}/delete`)).body.error.code).toBe('TokenNotFound');
  const ended = await here.post(`/user-session/${uuid}/delete`);
  expect([ended.body, ended.headers.get('set-cookie')]).toEqual([{ status: 'ok' }, null]);
  expect((await api.get('/auth', commandLine.secret)).status).toBe(401);
  const { secret } = await addCommandLine('ada@example.com');
  expect((await here.post(`${path}/end-others`)).body).toEqual({ status: 'ok' });
  expect([(await there.get('/auth')).status, (await api.get('/auth', secret)).status]).toEqual([401, 401]);
  expect((await eve.get('/auth')).status).toBe(200);
  const { log_ins: left } = (await here.get(path)).body;
  expect(left).toEqual([expect.objectContaining({ is_current: true })]);
  const last = await here.post(`/user-session/${left[0].uuid}/delete`);
  expect(last.headers.get('set-cookie')).toContain('Max-Age=0');
  expect((await here.get('/auth')).status).toBe(401);
});

test('an access token of the user neither sees nor ends log-ins', async () => {
  const browser = await logIn(api, 'ada@example.com');
  const { token } = (await browser.post('/v2/account/acme/token', { name: 'x', scopes: ['read'] })).body;
  const { uuid } = (await browser.get(path)).body.log_ins[0];
  const statuses = [
    (await api.get(path, token)).status,
    (await api.post(`/user-session/${uuid}/delete`, undefined, token)).status,
    (await api.post(`${path}/end-others`, undefined, token)).status,
  ];
  expect(statuses).toEqual([403, 403, 403]);
  expect((await browser.get('/auth')).status).toBe(200);
});
