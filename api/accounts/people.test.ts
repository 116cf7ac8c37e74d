import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accounts } from '../../model/account.ts';
import { users } from '../../model/user.ts';
import { addAdmin, addUser, logIn, ownPage, password } from '../testing/people.ts';
import type { Browser } from '../testing/people.ts';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
let admin: Browser;
let owner: Browser;
beforeAll(async () => {
  api = await openTestApi();
  await addAdmin(api, 'root@example.com', 'acme');
  await addUser(api, 'olga@example.com', 'acme', 'owner');
  [admin, owner] = [await logIn(api, 'root@example.com'), await logIn(api, 'olga@example.com')];
});
afterAll(async () => await api[Symbol.asyncDispose]());

/** Accepts an invitation, as the page does. */
async function accept(url: string, as = password) {
  const given = new URLSearchParams(new URL(url).hash.slice(1));
  const body = JSON.stringify({ user_email: given.get('email'), code: given.get('code'), password: as });
  return await api.call('POST', '/v2/invitation', { headers: ownPage, body });
}

describe('users', () => {
  test('are created by administrators, and set a password with their invitation, once', async () => {
    const created = await admin.post('/v2/user', { user_email: 'New@example.com' });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      user_email: 'new@example.com',
      url: expect.stringContaining(`${api.base}/invitation#email=new%40example.com&code=`),
      expires_at: expect.any(String),
    });
    expect((await accept(created.body.url, 'short')).status).toBe(400);
    expect((await accept(created.body.url)).status).toBe(200);
    expect((await accept(created.body.url)).status).toBe(403);
    const browser = await logIn(api, 'new@example.com');
    expect((await browser.get('/auth')).body).toEqual({ status: 'ok', accounts: [], is_admin: false });
    expect((await admin.post('/v2/user', { user_email: 'new@EXAMPLE.com' })).body.error.code).toBe('UserExists');
    const { users } = (await admin.get('/v2/users')).body;
    expect(users.find(({ user_email: email }: { user_email: string }) => email === 'new@example.com')).toEqual({
      user_email: 'new@example.com',
      is_admin: false,
      disabled: false,
      has_password: true,
      created_at: expect.any(String),
    });
  });

  test('set a new password with a new invitation, which ends their log-ins and invalidates the earlier invitation', async () => {
    await addUser(api, 'forgetful@example.com', 'acme', 'member');
    const browser = await logIn(api, 'forgetful@example.com');
    const [first, second] = [
      (await admin.post('/v2/user/forgetful@example.com/invite')).body.url,
      (await admin.post('/v2/user/forgetful@example.com/invite')).body.url,
    ];
    expect((await accept(first)).status).toBe(403);
    expect((await browser.get('/auth')).status).toBe(200);
    expect((await accept(second, 'a new password')).status).toBe(200);
    expect((await browser.get('/auth')).status).toBe(401);
  });

  test('that are disabled cannot use their log-ins, nor their access tokens', async () => {
    await addUser(api, 'out@example.com', 'acme', 'member');
    const browser = await logIn(api, 'out@example.com');
    const { token } = (await browser.post('/v2/account/acme/token', { name: 'x', scopes: ['read'] })).body;
    expect((await api.get('/auth', token)).status).toBe(200);
    expect((await admin.post('/v2/user/out@example.com/update', { disabled: true })).status).toBe(200);
    expect([(await browser.get('/auth')).status, (await api.get('/auth', token)).status]).toEqual([401, 401]);
    await expect(logIn(api, 'out@example.com')).rejects.toThrow('wrong');
    await admin.post('/v2/user/out@example.com/update', { disabled: false });
    expect((await api.get('/auth', token)).status).toBe(200);
  });

  test('that are the last administrator cannot be demoted or disabled', async () => {
    for (const change of [{ is_admin: false }, { disabled: true }]) {
      const { body } = await admin.post('/v2/user/root@example.com/update', change);
      expect(body.error.code).toBe('LastAdministrator');
    }
  });

  test('that are the last two administrators cannot both demote or disable each other at the same time', async () => {
    const names = ['root@example.com', 'second@example.com'];
    await addAdmin(api, 'second@example.com', 'acme');
    const second = await logIn(api, 'second@example.com');
    for (const [change, undo] of [
      [{ is_admin: false }, { is_admin: true }],
      [{ disabled: true }, { disabled: false }],
    ]) {
      const replies = await Promise.all([
        admin.post('/v2/user/second@example.com/update', change),
        second.post('/v2/user/root@example.com/update', change),
      ]);
      // The slower administrator may have lost the rights by then.
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
      const left = (await api.store.find(users, { index: 'byAdmin', equals: { isAdmin: true } })).filter(
        ({ disabledAt }) => !disabledAt,
      );
      expect(left).toHaveLength(1);
      for (const id of names) {
        await api.store.update(users, id, ({ disabledAt: _gone, ...user }) => ({ ...user, isAdmin: true }));
      }
      const by = left[0]?.id === 'root@example.com' ? admin : second;
      for (const id of names) expect((await by.post(`/v2/user/${id}/update`, undo)).status).toBe(200);
    }
    expect((await admin.post('/v2/user/second@example.com/update', { is_admin: false })).status).toBe(200);
  });

  test('that are invited as administrators count once they have a password', async () => {
    const invited = (await admin.post('/v2/user', { user_email: 'third@example.com', is_admin: true })).body;
    const demoteRoot = async () => await admin.post('/v2/user/root@example.com/update', { is_admin: false });
    expect((await demoteRoot()).body.error.code).toBe('LastAdministrator');
    expect((await accept(invited.url)).status).toBe(200);
    expect((await demoteRoot()).status).toBe(200);
    const third = await logIn(api, 'third@example.com');
    expect((await third.post('/v2/user/root@example.com/update', { is_admin: true })).status).toBe(200);
    expect((await admin.post('/v2/user/third@example.com/update', { is_admin: false })).status).toBe(200);
  });

  test('cannot be managed by owners, nor with access tokens of an administrator', async () => {
    const { token } = (await admin.post('/v2/account/acme/token', { name: 'x', scopes: ['manage', 'read'] })).body;
    for (const path of ['/v2/users']) {
      expect((await owner.get(path)).status).toBe(403);
      expect((await api.get(path, token)).status).toBe(403);
      expect((await api.get(path)).status).toBe(403);
    }
    expect((await owner.post('/v2/user', { user_email: 'x@example.com' })).status).toBe(403);
    expect((await owner.post('/v2/account', { name: 'mine' })).status).toBe(403);
  });

  test.each(['', 'x', 'x@', '@x', 'a b@c', 'a@b\u202e', 'a@b/c', `${'a'.repeat(250)}@b.cd`, '__proto__'])(
    'cannot be created with the invalid e-mail address %j',
    async (email) => {
      const { status, body } = await admin.post('/v2/user', { user_email: email });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining('user_email: ')]);
    },
  );
});

describe('accounts and members', () => {
  test('an administrator creates accounts and has access to all of them', async () => {
    expect((await admin.post('/v2/account', { name: 'lab', owner_email: 'olga@example.com' })).status).toBe(201);
    expect((await admin.post('/v2/account', { name: 'lab' })).body.error.code).toBe('AccountExists');
    expect((await admin.post('/v2/account', { name: 'token' })).status).toBe(400);
    expect((await owner.get('/v2/accounts')).body.accounts).toContainEqual({ name: 'lab', role: 'owner' });
    expect((await admin.get('/v2/accounts')).body.accounts).toContainEqual({ name: 'lab', role: 'owner' });
    expect((await admin.post('/v2/account/lab/service', { name: 'x' })).status).toBe(200);
    expect((await admin.post('/v2/account/nope/service', { name: 'x' })).body.error.code).toBe('AccountNotFound');
  });

  test('owners add, change and remove members, which takes effect at once', async () => {
    await addUser(api, 'mia@example.com', 'other', 'viewer');
    const mia = await logIn(api, 'mia@example.com');
    expect((await mia.get('/v2/service/acme/draw')).body.error.code).toBe('ServiceNotFound');
    const setRole = async (role: string) =>
      await owner.post('/v2/account/acme/member', { user_email: 'mia@example.com', role });
    expect((await setRole('viewer')).body).toEqual({ status: 'ok' });
    expect((await mia.get('/v2/service/acme/draw')).status).toBe(200);
    expect((await mia.post('/v2/service/acme/draw/connect', {})).status).toBe(403);
    await setRole('member');
    expect((await mia.post('/v2/service/acme/draw/connect', {})).status).toBe(200);
    expect((await mia.get('/v2/account/acme/members')).status).toBe(403);
    expect((await owner.get('/v2/account/acme/members')).body.members).toContainEqual({
      user_email: 'mia@example.com',
      role: 'member',
      added_at: expect.any(String),
    });
    const { token } = (await mia.post('/v2/account/acme/token', { name: 'x', scopes: ['read'] })).body;
    expect((await owner.post('/v2/account/acme/member/mia@example.com/remove')).body).toEqual({ status: 'ok' });
    expect((await mia.get('/v2/service/acme/draw')).body.error.code).toBe('ServiceNotFound');
    expect((await api.get('/v2/service/acme/draw', token)).status).toBe(401);
    expect((await owner.post('/v2/account/acme/member/mia@example.com/remove')).body.error.code).toBe('UserNotFound');
  });

  test('members list and revoke their own tokens, owners all tokens', async () => {
    await addUser(api, 'tom@example.com', 'acme', 'member');
    const tom = await logIn(api, 'tom@example.com');
    const mine = (await tom.post('/v2/account/acme/token', { name: 'mine', scopes: ['read'] })).body;
    const theirs = (await owner.post('/v2/account/acme/token', { name: 'theirs', scopes: ['read'] })).body;
    const names = async (browser: Browser) =>
      (await browser.get('/v2/account/acme/tokens')).body.tokens.map(({ name }: { name: string }) => name);
    expect(await names(tom)).toEqual(['mine']);
    expect(await names(owner)).toEqual(expect.arrayContaining(['mine', 'theirs']));
    expect((await tom.post(`/v2/account/acme/token/${theirs.id}/revoke`)).body.error.code).toBe('TokenNotFound');
    expect((await tom.post(`/v2/account/acme/token/${mine.id}/revoke`)).body).toEqual({ status: 'ok' });
  });

  test('the last owner cannot be demoted or removed', async () => {
    await addUser(api, 'solo@example.com', 'solo', 'owner');
    const solo = await logIn(api, 'solo@example.com');
    const demoted = await solo.post('/v2/account/solo/member', { user_email: 'solo@example.com', role: 'viewer' });
    const removed = await solo.post('/v2/account/solo/member/solo@example.com/remove');
    expect([demoted.body.error.code, removed.body.error.code]).toEqual(['LastOwner', 'LastOwner']);
  });

  test('when the last two owners remove each other at the same time, one stays', async () => {
    for (const name of ['left', 'right']) await addUser(api, `${name}@example.com`, 'pair', 'owner');
    const [left, right] = [await logIn(api, 'left@example.com'), await logIn(api, 'right@example.com')];
    const replies = await Promise.all([
      left.post('/v2/account/pair/member/right@example.com/remove'),
      right.post('/v2/account/pair/member', { user_email: 'left@example.com', role: 'viewer' }),
    ]);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    const { members = [] } = (await api.store.get(accounts, 'pair')) ?? {};
    expect(members.filter(({ role }) => role === 'owner')).toHaveLength(1);
  });

  test('an unknown user cannot be added', async () => {
    const { body } = await owner.post('/v2/account/acme/member', { user_email: 'nobody@example.com', role: 'owner' });
    expect(body.error.code).toBe('UserNotFound');
  });
});
