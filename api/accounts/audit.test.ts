import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditRecords } from '../../model/audit.ts';
import { addSetupCode } from '../../model/setup.ts';
import { addAdmin, addUser, logIn, ownPage, password } from '../testing/people.ts';
import type { Browser } from '../testing/people.ts';
import { steered, unreachableWhile } from '../../test/kit/ports/steered.ts';
import { connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
let owner: Browser;
beforeAll(async () => {
  api = await openTestApi();
  await addUser(api, 'olga@example.com', 'acme', 'owner');
  owner = await logIn(api, 'olga@example.com');
});
afterAll(async () => await api[Symbol.asyncDispose]());

async function newest(count = 1) {
  return (await owner.get(`/v2/account/acme/audit?limit=${count}`)).body.records;
}

test('a change is recorded with its user, token, address and outcome', async () => {
  const reply = await owner.post('/v2/account/acme/service', { name: 'audited' });
  expect(await newest()).toEqual([
    {
      time: expect.any(String),
      action: 'createService',
      details: { account: 'acme', name: 'audited' },
      user_email: 'olga@example.com',
      token_id: expect.stringMatching(/^[0-9a-f]{20}$/),
      address: '127.0.0.1',
      request_id: reply.headers.get('x-request-id'),
      status: 200,
    },
  ]);
});

test('a change by an access token names the token, and one that fails has the status of the failure', async () => {
  const { token, id } = (await owner.post('/v2/account/acme/token', { name: 'ci', scopes: ['manage'] })).body;
  expect((await newest())[0].details).toEqual({ account: 'acme', name: 'ci', scopes: ['manage'] });
  await api.post('/v2/account/acme/service', { name: 'draw' }, token);
  expect((await newest())[0]).toMatchObject({ action: 'createService', token_id: id, status: 409 });
  const { backend_id: backend } = (await api.post(connectPath)).body;
  await api.post(`/v2/backend/${backend}/terminate`, { hard: true });
  expect((await newest())[0]).toMatchObject({
    action: 'terminate',
    details: { backend_id: backend, hard: true },
    user_email: null,
  });
});

test('reads, connects, and requests that are rejected before they are handled are not recorded', async () => {
  const [before] = await newest();
  await api.post(connectPath, { key: 'room' });
  await api.get('/v2/account/acme/services');
  await api.post('/v2/account/acme/service', { name: '../x' });
  await api.post('/v2/account/acme/service', { name: 'x' }, await api.tokenFor('acme', ['read']));
  await api.post('/v2/account/acme/service', { name: 'x' }, await api.tokenFor('other', ['manage']));
  expect(await newest()).toEqual([before]);
});

test('an anonymous request costs one record, and none if no limit has counted it', async () => {
  const writes: string[] = [];
  await using counted = await openTestApi({
    storeOf: (store) =>
      steered(store, {
        onCall: async ({ method, collection, run }) => {
          if (collection === 'audit') writes.push(method);
          return await run();
        },
      }),
  });
  const send = async (path: string, body: object) =>
    (await counted.call('POST', path, { headers: ownPage, body: JSON.stringify(body) })).status;
  const wrong = { user_email: 'Olga@example.com', password: 'wrong' };
  writes.length = 0;
  expect(await send('/v2/session', wrong)).toBe(401);
  expect(writes).toEqual(['insert']);
  const [record] = await counted.store.find(auditRecords, { index: 'byAccount', equals: { account: '' } });
  expect(record).toMatchObject({ action: 'logIn', user: 'olga@example.com', status: 401 });
  for (let i = 0; i < 9; i += 1) await send('/v2/session', wrong);
  writes.length = 0;
  expect(await send('/v2/session', wrong)).toBe(429);
  expect(await send(`/cli-login/${'a'.repeat(43)}/complete`, { code: '000000' })).toBe(404);
  expect(writes).toEqual([]);
});

test('the pages for logging in are recorded like their endpoints', async () => {
  await using fresh = await openTestApi();
  await addSetupCode(fresh.store, 'aaaaa', 'acme');
  const send = async (path: string, fields: Record<string, string>, cookie = '') => {
    const headers = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded', cookie };
    return await fresh.call('POST', path, { headers, body: new URLSearchParams(fields).toString() });
  };
  const root = { user_email: 'root@example.com', password };
  await send('/setup', { ...root, code: 'aaaaa' });
  await send('/invitation', { ...root, code: 'wrong' });
  await send('/login', { ...root, password: 'wrong' });
  const cookie = (await send('/login', root)).headers.get('set-cookie')?.split(';')[0];
  const { token } = (await fresh.call('POST', '/cli-login', { headers: ownPage, body: '{}' })).body;
  expect((await send(`/cli-login/${token}`, {}, cookie)).status).toBe(200);
  expect((await send(`/cli-login/${'a'.repeat(43)}`, {}, cookie)).status).toBe(404);
  expect((await send('/logout', {}, cookie)).status).toBe(303);
  await send('/logout', {});
  const records = await fresh.store.find(auditRecords, { index: 'byAccount', equals: { account: '' } });
  const outcomes = records.map(({ action, user, status }) => [action, user, status]);
  expect(outcomes).toEqual([
    ['setUp', 'root@example.com', 200],
    ['acceptInvitation', 'root@example.com', 403],
    ['logIn', 'root@example.com', 401],
    ['logIn', 'root@example.com', 200],
    ['beginCliLogin', undefined, 200],
    ['confirmCliLogin', 'root@example.com', 200],
    ['logOut', 'root@example.com', 200],
  ]);
  expect(records.at(-1)?.details).toEqual({ uuid: records.at(-1)?.token });
  expect(JSON.stringify(records)).not.toMatch(new RegExp(`${password}|aaaaa|berth_`));
});

test('no secret is recorded', async () => {
  const fresh = await logIn(api, 'olga@example.com');
  await fresh.post('/v2/user/password', { current_password: password, new_password: 'another good password' });
  const everything = JSON.stringify(await api.store.find(auditRecords, { index: 'byAccount' }));
  expect(everything).toContain('changePassword');
  expect(everything).not.toMatch(/another good password|correct horse|berth_/);
  await api.call('POST', '/v2/session', { headers: ownPage, body: '{}' });
  owner = await logIn(api, 'olga@example.com', 'another good password');
});

test('owners read the audit of their account, in pages, and administrators the audit of the platform', async () => {
  await addUser(api, 'mia@example.com', 'acme', 'member');
  await addAdmin(api, 'root@example.com', 'acme');
  const [mia, admin] = [await logIn(api, 'mia@example.com'), await logIn(api, 'root@example.com')];
  expect((await mia.get('/v2/account/acme/audit')).status).toBe(403);
  expect((await owner.get('/v2/audit')).status).toBe(403);
  expect((await owner.get('/v2/account/other/audit')).status).toBe(404);
  const first = (await owner.get('/v2/account/acme/audit?limit=2')).body;
  const second = (await owner.get(`/v2/account/acme/audit?limit=2&cursor=${first.next_cursor}`)).body;
  expect(first.records).toHaveLength(2);
  expect(Date.parse(second.records[0].time)).toBeLessThanOrEqual(Date.parse(first.records[1].time));
  await admin.post('/v2/user', { user_email: 'someone@example.com' });
  const { records } = (await admin.get('/v2/audit?limit=1')).body;
  expect(records[0]).toMatchObject({
    action: 'createUser',
    details: { user_email: 'someone@example.com' },
    user_email: 'root@example.com',
    status: 201,
  });
});

test('if the process dies during a change, the record of the change stays, without a status', async () => {
  let isDying = false;
  await using dying = await openTestApi({
    storeOf: (store) =>
      steered(store, {
        onCall: async ({ method, collection, run }) => {
          const isLost = isDying && ['insert services', 'update audit'].includes(`${method} ${collection}`);
          if (isLost) throw new Error('The process died');
          return await run();
        },
      }),
  });
  isDying = true;
  expect((await dying.post('/v2/account/acme/service', { name: 'lost' })).status).toBe(500);
  const records = await dying.store.find(auditRecords, { index: 'byAccount', order: 'descending' });
  expect(records[0]).toMatchObject({ action: 'createService', details: { account: 'acme', name: 'lost' } });
  expect(records[0]?.status).toBeUndefined();
});

test('a change whose record cannot be completed is still answered as a success', async () => {
  let isCut = false;
  await using cut = await openTestApi({
    storeOf: (store) =>
      steered(store, {
        onCall: unreachableWhile(({ method, collection }) => isCut && `${method} ${collection}` === 'update audit'),
      }),
  });
  isCut = true;
  expect((await cut.post('/v2/account/acme/service', { name: 'made' })).status).toBe(200);
  const [record] = await cut.store.find(auditRecords, { index: 'byAccount', order: 'descending' });
  expect([record?.details, record?.status]).toEqual([{ account: 'acme', name: 'made' }, undefined]);
});
