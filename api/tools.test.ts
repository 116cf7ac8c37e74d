import { afterAll, beforeAll, expect, test } from 'vitest';
import { backends } from '../model/backend.ts';
import { becomeServing, connectPath, digestOf, openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

const path = '/service/acme/draw/terminate-backends';

async function spawned(at: string, connect = connectPath): Promise<string> {
  const { backend_id: id } = (await api.post(connect)).body;
  await api.change(id, becomeServing);
  await api.store.update(backends, id, (backend) => ({ ...backend, createdAt: new Date(at) }));
  return id;
}

async function kindOf(id: string): Promise<string | undefined> {
  return (await api.store.get(backends, id))?.stop?.kind;
}

test('the name of an image, for any token of the account', async () => {
  const pusher = await api.tokenFor('acme', ['push']);
  const { status, body } = await api.get('/service/acme/draw/image-name', pusher);
  expect([status, body]).toEqual([200, { imageName: 'registry.example/acme/draw' }]);
  expect((await api.get('/service/acme/nope/image-name')).body.error.code).toBe('ServiceNotFound');
});

test('backends from before a time are counted, then stopped', async () => {
  await api.addService('other');
  await api.addImage('acme/other', 'latest', digestOf('a'));
  const early = [await spawned('2001-01-01T00:00:00Z'), await spawned('2001-06-01T00:00:00Z')];
  const late = await spawned('2002-01-01T00:00:00Z');
  const other = await spawned('2001-01-01T00:00:00Z', '/v2/service/acme/other/connect');
  const before = '2002-01-01T00:00:00.000Z';

  const dry = (await api.post(path, { before, hard: false, dry_run: true })).body;
  expect(dry).toEqual({ status: 'ok', backend_count: 2, terminated_count: 0, is_complete: false });
  expect(await Promise.all(early.map(kindOf))).toEqual([undefined, undefined]);

  const soft = (await api.post(path, { before, hard: false, dry_run: false })).body;
  expect(soft).toEqual({ status: 'ok', backend_count: 2, terminated_count: 2, is_complete: true });
  expect(await Promise.all([...early, late, other].map(kindOf))).toEqual(['soft', 'soft', undefined, undefined]);

  const again = (await api.post(path, { before })).body;
  expect([again.terminated_count, again.is_complete]).toEqual([0, true]);
  expect((await api.post(path, { before, hard: true })).body.terminated_count).toBe(2);
  expect(await Promise.all(early.map(kindOf))).toEqual(['hard', 'hard']);
});

test('without a time, all backends are stopped, whatever the clock of the client shows', async () => {
  await api.addService('now');
  await api.addImage('acme/now', 'latest', digestOf('a'));
  const { backend_id: id } = (await api.post('/v2/service/acme/now/connect')).body;
  await api.change(id, becomeServing);
  const { body } = await api.post('/service/acme/now/terminate-backends', {});
  expect(body).toEqual({ status: 'ok', backend_count: 1, terminated_count: 1, is_complete: true });
});

test('a dry run without backends to stop is complete', async () => {
  const { body } = await api.post(path, { before: '1990-01-01T00:00:00Z', dry_run: true });
  expect(body).toEqual({ status: 'ok', backend_count: 0, terminated_count: 0, is_complete: true });
});

test.each([
  [{ before: 'yesterday' }, 'before'],
  [{ before: 1 }, 'before'],
  [{ before: '2001-01-01T00:00:00Z', hard: 'yes' }, 'hard'],
  [{ before: '2001-01-01T00:00:00Z', dry_run: 1 }, 'dry_run'],
  [{ before: '2001-01-01T00:00:00Z', after: 1 }, 'after'],
])('%j is rejected', async (body, field) => {
  const { status, body: answer } = await api.post(path, body);
  expect([status, answer.error.message]).toEqual([400, expect.stringContaining(`${field}:`)]);
});

test('an environment is named in the paths that command lines use', async () => {
  await api.post('/v2/service/acme/draw/environments', { name: 'staging' });
  expect((await api.post('/v2/service/acme/draw/staging/connect')).body.spawned).toBe(true);
  expect((await api.post('/v2/service/acme/draw/staging/update', { image_tag: 'latest' })).body.status).toBe('ok');
  const old = { env: { A: 'b' }, grace_period_seconds: 30, lock: 'cli', service_environment: 'staging' };
  const { name } = (await api.post('/v1/user/acme/service/draw/spawn', old)).body;
  expect(await api.store.get(backends, name)).toMatchObject({ environment: 'staging', key: 'cli', maxIdleSeconds: 30 });
});
