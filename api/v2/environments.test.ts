import { afterAll, beforeAll, expect, test } from 'vitest';
import { digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  await api.addImage('acme/draw', 'next', digestOf('b'));
});
afterAll(async () => await api[Symbol.asyncDispose]());

const path = '/v2/service/acme/draw/environments';

test('an environment is created, shown, spawned in, and deleted', async () => {
  expect((await api.post(path, { name: 'staging', image_tag: 'next', cluster: 'small' })).body).toEqual({
    status: 'ok',
  });
  const [byDefault, staging] = (await api.get(path)).body.environments;
  expect(byDefault).toMatchObject({ name: 'default', image_tag: 'latest', cluster: 'main' });
  expect(staging).toEqual({
    cluster: 'small',
    created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    image_tag: 'next',
    last_spawned_at: null,
    name: 'staging',
  });
  expect((await api.get('/v2/service/acme/draw')).body.environments).toEqual([byDefault, staging]);

  const { backend_id: id } = (await api.post('/v2/service/acme/draw/staging/connect', { key: 'kept' })).body;
  expect((await api.get(`/v2/backend/${id}`)).body).toMatchObject({
    environment_name: 'staging',
    cluster_name: 'small',
    image_digest: digestOf('b'),
  });
  expect((await api.post('/v2/service/acme/draw/staging/update', { image_tag: 'latest' })).body.status).toBe('ok');
  expect((await api.get(path)).body.environments[1].image_tag).toBe('latest');

  expect((await api.post('/v2/service/acme/draw/staging/delete')).body).toEqual({ status: 'ok' });
  expect((await api.get(path)).body.environments).toHaveLength(1);
  for (const action of ['connect', 'update', 'delete']) {
    const body = action === 'update' ? { image_tag: 'latest' } : undefined;
    const { status, body: answer } = await api.post(`/v2/service/acme/draw/staging/${action}`, body);
    expect([status, answer.error.code]).toEqual([404, 'EnvironmentNotFound']);
  }
  // Its backends keep running, with their keys.
  expect((await api.get(`/v2/backend/${id}`)).body.statuses.at(-1).status).toBe('scheduled');
  expect((await api.post('/v2/service/acme/draw/connect', { key: 'kept' })).body.backend_id).toBe(id);
});

test('omitted fields have the defaults of the platform', async () => {
  await api.post(path, { name: 'plain' });
  const { environments } = (await api.get(path)).body;
  expect(environments.find((each: { name: string }) => each.name === 'plain')).toMatchObject({
    image_tag: 'latest',
    cluster: 'main',
  });
});

test('the default environment cannot be deleted', async () => {
  const { status, body } = await api.post('/v2/service/acme/draw/default/delete');
  expect([status, body.error.message]).toEqual([400, expect.stringContaining('environment:')]);
  expect((await api.post('/v2/service/acme/draw/connect')).status).toBe(200);
});

test.each([
  [{}, 400, 'BadRequest', 'name'],
  [{ name: 'A' }, 400, 'BadRequest', 'name'],
  [{ name: '../x' }, 400, 'BadRequest', 'name'],
  [{ name: 'x'.repeat(64) }, 400, 'BadRequest', 'name'],
  [{ name: 'b', image_tag: 'no tag' }, 400, 'BadRequest', 'image_tag'],
  [{ name: 'b', cluster: 'NO' }, 400, 'BadRequest', 'cluster'],
  [{ name: 'b', more: 1 }, 400, 'BadRequest', 'more'],
  [{ name: 'b', image_tag: 'absent' }, 404, 'ImageNotFound', 'absent'],
  [{ name: 'default' }, 409, 'EnvironmentExists', 'default'],
])('%j is rejected', async (request, status, code, named) => {
  const answer = await api.post(path, request);
  expect([answer.status, answer.body.error.code]).toEqual([status, code]);
  expect(answer.body.error.message).toContain(named);
});

test('a service has at most 100 environments', async () => {
  await api.addService('crowded');
  const statuses = new Set<number>();
  for (let i = 0; i < 99; i += 1) {
    statuses.add((await api.post('/v2/service/acme/crowded/environments', { name: `e${i}` })).status);
  }
  expect([...statuses]).toEqual([200]);
  const { status, body } = await api.post('/v2/service/acme/crowded/environments', { name: 'more' });
  expect([status, body.error.code]).toEqual([409, 'TooManyEnvironments']);
});

test('environments of other accounts and services are not found', async () => {
  const other = await api.tokenFor('other', ['read', 'manage']);
  expect((await api.get(path, other)).body.error.code).toBe('ServiceNotFound');
  expect((await api.post(path, { name: 'b' }, other)).body.error.code).toBe('ServiceNotFound');
  expect((await api.post('/v2/service/acme/draw/plain/delete', undefined, other)).body.error.code).toBe(
    'ServiceNotFound',
  );
  expect((await api.get('/v2/service/acme/nope/environments')).body.error.code).toBe('ServiceNotFound');
});
