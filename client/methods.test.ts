/** Every endpoint has a method of the client, and the API accepts what the method sends. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addAdmin, addUser, logIn, ownPage, password } from '../api/testing/people.ts';
import { becomeServing, digestOf, openTestApi } from '../api/testing/test-api.ts';
import type { TestApi } from '../api/testing/test-api.ts';
import { openTestNode } from '../api/testing/test-node.ts';
import { githubIssuer } from '../contract/trust.ts';
import { backends, becomeTerminated } from '../model/backend.ts';
import { addSetupCode } from '../model/setup.ts';
import { endpoints } from './contract.ts';
import { BerthClient, BerthError } from './index.ts';

const parts = new AsyncDisposableStack();
let api: TestApi;
/** The endpoints that were called. */
const called = new Set<keyof typeof endpoints>();
/** A client of an access token, and one of an administrator who has logged in. */
let berth: BerthClient;
let admin: BerthClient;

beforeAll(async () => {
  api = parts.use(await openTestApi({ oidcIssuers: [githubIssuer] }));
  const lines = [`${JSON.stringify({ at: '1767225600.000000000-00000000', line: 'a line' })}\n`];
  parts.use(await openTestNode(api, (_request, response) => response.end(lines.join(''))));
  await addAdmin(api, 'root@example.com', 'acme');
  const { cookie } = await logIn(api, 'root@example.com');
  berth = clientOf({}, api.token);
  admin = clientOf({ ...ownPage, cookie });
});
afterAll(async () => await parts.disposeAsync());

function clientOf(headers: Readonly<Record<string, string>>, token?: string): BerthClient {
  const recording = async (input: Parameters<typeof fetch>[0], init: RequestInit = {}) => {
    called.add(endpointOf(init.method ?? 'GET', new URL(input).pathname));
    const all = { ...headers, ...(init.headers as Record<string, string>) };
    return await fetch(input, { ...init, headers: all });
  };
  return new BerthClient({ url: api.base, token, fetch: recording, retries: 0 });
}

/** The endpoint of a request: the matching one with the fewest parameters. */
function endpointOf(method: string, path: string): keyof typeof endpoints {
  const matching = Object.entries(endpoints).filter(
    (each) => each[1].method === method && new RegExp(`^${each[1].path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  );
  const parameters = (template: string) => template.split('{').length;
  const [first] = matching.toSorted((a, b) => parameters(a[1].path) - parameters(b[1].path));
  if (!first) throw new Error(`The client has sent ${method} ${path}, which no endpoint answers`);
  return first[0] as keyof typeof endpoints;
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof BerthError ? error.code : String(error);
}

test('services, environments, settings and spawn tokens', async () => {
  await berth.createService('acme/new');
  expect(await Array.fromAsync(berth.services('acme'))).toEqual(['draw', 'new']);
  await berth.environments.create('acme/new', { name: 'staging' });
  expect((await berth.environments.list('acme/new')).map(({ name }) => name)).toEqual(['default', 'staging']);
  expect((await berth.service('acme/new')).name).toBe('new');
  expect(await berth.imageName('acme/draw')).toBe('registry.example/acme/draw');
  // The platform of this test stores no images.
  expect(await codeOf(berth.uploadImage('acme/new', { archive: new Blob([]) }))).toBe('ImagesElsewhere');
  expect(await codeOf(berth.downloadImage('acme/draw', digestOf('a')))).toBe('ImagesElsewhere');
  await berth.setImage('acme/draw', 'latest');
  await berth.setImage('acme/draw', 'latest', { environment: 'default' });
  expect(await Array.fromAsync(berth.images('acme/draw'))).toHaveLength(1);
  await berth.settings.change('acme/new', { port: 3000, env: { A: '1' }, secrets: { PASSWORD: 'hunter2' } });
  const settings = await berth.settings.get('acme/new');
  expect(settings).toMatchObject({ port: 3000, env: { A: '1' }, secrets: ['PASSWORD'] });
  await berth.settings.setPublic('acme/new', true);
  expect(await berth.settings.isPublic('acme/new')).toBe(true);
  const token = await berth.spawnTokens.create('acme/draw', { env: { A: '1' } });
  expect(await berth.spawnTokens.spawn(token, { env: { PLATFORM_B: '2' } })).toMatchObject({ spawned: true });
  await berth.spawnTokens.revoke(token);
  expect(await codeOf(berth.spawnTokens.spawn(token))).toBe('SpawnTokenNotFound');
  await berth.environments.delete('acme/new', 'staging');
  await berth.deleteService('acme/new');
  expect(await codeOf(berth.service('acme/new'))).toBe('ServiceNotFound');
});

test('backends', async () => {
  const { backend_id: id } = await berth.connect('acme/draw', { key: 'room-1' });
  await berth.connect('acme/draw', { key: 'room-1' }, { environment: 'default' });
  await api.change(id, becomeServing);
  expect((await berth.status(id)).status).toBe('ready');
  expect((await berth.waitUntilReady(id)).status).toBe('ready');
  expect((await berth.backend(id)).id).toBe(id);
  expect((await Array.fromAsync(berth.backends('acme/draw'))).map((each) => each.id)).toContain(id);
  expect((await Array.fromAsync(berth.runningBackends('acme'))).map((each) => each.id)).toContain(id);
  expect(await berth.traffic(id)).toMatchObject({ backend_id: id, requests: 0, counted_at: null });
  for await (const { line } of berth.logs(id)) {
    expect(line).toBe('a line');
    break;
  }
  // The node of this test has no metrics.
  await Array.fromAsync(berth.metrics(id, { signal: AbortSignal.timeout(200) })).catch(() => {});
  const stopping = berth.stop(id);
  // The API answers when the node has begun to stop the backend, as the test does here, or a while later.
  await expect.poll(async () => (await api.store.get(backends, id))?.stop).toBeDefined();
  await api.change(id, (backend) =>
    becomeTerminated(backend, { kind: 'soft', reason: 'external', exitCode: 0 }, new Date()),
  );
  await stopping;
  const before = new Date(Date.now() + 60_000).toISOString();
  expect(await berth.stopBackends('acme/draw', { before, dry_run: true })).toMatchObject({ terminated_count: 0 });
});

test('accounts, members, tokens and trust rules', async () => {
  await admin.accounts.create({ name: 'beta' });
  expect((await Array.fromAsync(admin.accounts.list())).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['beta']),
  );
  await addUser(api, 'ada@example.com', 'others', 'owner');
  await admin.accounts.setMember('beta', { user_email: 'ada@example.com', role: 'viewer' });
  expect(await admin.accounts.members('beta')).toContainEqual(expect.objectContaining({ role: 'viewer' }));
  await admin.accounts.removeMember('beta', 'ada@example.com');
  await admin.accounts.setLimits('beta', { running_backends: 5 });
  expect(await admin.accounts.limits('beta')).toMatchObject({ running_backends: 5 });
  const { id, token } = await admin.tokens.create('beta', { name: 'CI', scopes: ['push'] });
  expect(token).toMatch(/^beta\./);
  expect((await Array.fromAsync(admin.tokens.list('beta'))).map((each) => each.id)).toContain(id);
  await admin.tokens.revoke('beta', id);
  const rule = await admin.trustRules.create('beta', { repository: 'acme/draw' });
  expect((await Array.fromAsync(admin.trustRules.list('beta'))).map((each) => each.id)).toEqual([rule.id]);
  expect(await codeOf(admin.trustRules.exchange('beta', 'no token'))).toBe('Unauthorized');
  await admin.trustRules.delete('beta', rule.id);
  expect((await Array.fromAsync(admin.accounts.audit('beta'))).map(({ action }) => action)).toContain(
    'deleteTrustRule',
  );
  expect((await Array.fromAsync(admin.accounts.platformAudit())).map(({ action }) => action)).toContain(
    'createAccount',
  );
});

test('a controller can be passed as the options of any method', async () => {
  const controller = new AbortController();
  const reason = new Error('The page was closed');
  controller.abort(reason);
  await expect(berth.environments.list('acme/draw', controller)).rejects.toBe(reason);
  await expect(berth.environments.delete('acme/draw', 'staging', controller)).rejects.toBe(reason);
  await expect(berth.settings.setPublic('acme/draw', true, controller)).rejects.toBe(reason);
});

test('users and log-ins', async () => {
  const { url } = await admin.users.create({ user_email: 'new@example.com' });
  expect(await admin.users.invite('new@example.com')).not.toEqual(url);
  expect((await Array.fromAsync(admin.users.list())).map((each) => each.user_email)).toContain('new@example.com');
  await admin.users.update('new@example.com', { disabled: true });
  const invitation = { user_email: 'new@example.com', code: 'wrong', password };
  expect(await codeOf(admin.logIns.acceptInvitation(invitation))).toBe('Forbidden');
  await addSetupCode(api.store, 'right', 'acme');
  expect(await codeOf(admin.logIns.setUp({ code: 'wrong', user_email: 'a@example.com', password }))).toBe('Forbidden');
  const browser = clientOf(ownPage);
  const session = await browser.logIns.logIn({ user_email: 'root@example.com', password });
  expect(session.user_is_admin).toBe(true);
  await admin.logIns.logOut(session.uuid);
  await admin.logIns.logOutOthers();
  expect((await Array.fromAsync(admin.logIns.list())).map((each) => each.is_current)).toEqual([true]);
  const wrong = { current_password: 'wrong', new_password: 'another password' };
  expect(await codeOf(admin.logIns.changePassword(wrong))).toBe('Unauthorized');
  const { token } = await browser.logIns.beginCli();
  expect(await codeOf(browser.cliLoginStatus(token, { signal: AbortSignal.timeout(200) }))).toContain('TimeoutError');
  expect(await codeOf(browser.logIns.completeCli(token, '0000'))).toBe('Forbidden');
});

test('nodes', async () => {
  expect(await admin.nodes.list()).toMatchObject([{ name: 'node-1', drained_at: null }]);
  expect(await codeOf(admin.nodes.drain('none'))).toBe('NodeNotFound');
  expect(await codeOf(admin.nodes.undrain('none'))).toBe('NodeNotFound');
});

test('every endpoint was called', () => {
  expect(Object.keys(endpoints).filter((name) => !called.has(name as keyof typeof endpoints))).toEqual([]);
});
