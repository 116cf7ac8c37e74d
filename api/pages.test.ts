import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessTokens, hashToken } from '../model/access-token.ts';
import { backends, becomeTerminated } from '../model/backend.ts';
import { newBackendId } from '../model/ids.ts';
import { connectPath, digestOf, openTestApi } from './testing/test-api.ts';
import type { Reply, TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

const listPath = '/v2/service/acme/draw/backends';
const idsOf = ({ body }: Reply): string[] => body.backends.map(({ id }: { id: string }) => id);

/** Copies a backend, so that several have the same creation time. */
async function copy(id: string, times: number): Promise<string[]> {
  const original = await api.store.get(backends, id);
  if (!original) throw new Error('There is no such backend');
  const copies = Array.from({ length: times }, () => ({ ...original, id: newBackendId() }));
  for (const each of copies) await api.store.insert(backends, each);
  return copies.map((each) => each.id);
}

/** Reads all pages of a list. */
async function pagesOf(path: string, field: string): Promise<unknown[][]> {
  const pages: unknown[][] = [];
  let cursor: string | undefined;
  do {
    const { status, body } = await api.get(`${path}${cursor === undefined ? '' : `&cursor=${cursor}`}`);
    expect(status).toBe(200);
    pages.push(body[field]);
    cursor = body.next_cursor;
  } while (cursor !== undefined);
  return pages;
}

describe('lists', () => {
  test('have pages that contain everything once, in order, including items with the same time', async () => {
    const first = (await api.post(connectPath)).body.backend_id;
    const alike = await copy(first, 6);
    const last = (await api.post(connectPath)).body.backend_id;
    const whole = await api.get(listPath);
    expect(whole.body).not.toHaveProperty('next_cursor');
    expect(idsOf(whole)).toEqual([last, ...[first, ...alike].toSorted((a, b) => (a < b ? 1 : -1))]);
    for (const limit of [1, 2, 3, 7, 8]) {
      const pages = await pagesOf(`${listPath}?limit=${limit}`, 'backends');
      expect(pages.flat()).toEqual(whole.body.backends);
      expect(pages).toHaveLength(Math.ceil(8 / limit));
    }
    const { created_at: time } = whole.body.backends[1];
    const within = await pagesOf(`${listPath}?limit=2&start=${time}&end=${time}`, 'backends');
    expect(within.flat()).toEqual(whole.body.backends.slice(1));
    const running = await pagesOf('/v2/account/acme/backends?limit=3', 'running_backends');
    expect(running.map(({ length }) => length)).toEqual([3, 3, 2]);
  });

  test('continue at the same position when items are added and removed', async () => {
    const old = await copy((await api.post(connectPath)).body.backend_id, 3);
    const page = await api.get(`${listPath}?limit=2`);
    await api.store.delete(backends, idsOf(page)[1] ?? '');
    await api.post(connectPath);
    const next = await api.get(`${listPath}?limit=2&cursor=${page.body.next_cursor}`);
    const seen = [...idsOf(page), ...idsOf(next)];
    expect(seen).toHaveLength(new Set(seen).size);
    for (const id of old) expect(seen).toContain(id);
  });

  test('of services and images have pages, too', async () => {
    for (const name of ['b', 'c', 'a']) await api.addService(name);
    expect(await pagesOf('/v2/account/acme/services?limit=2', 'services')).toEqual([
      ['a', 'b'],
      ['c', 'draw'],
    ]);
    await api.addImage('acme/draw', 'v2', digestOf('b'));
    const images = (await api.get('/v2/service/acme/draw/images')).body.images;
    expect(await pagesOf('/v2/service/acme/draw/images?limit=1', 'images')).toEqual(
      images.map((each: unknown) => [each]),
    );
  });

  test('contain only what concerns these services, for a token that is limited to services', async () => {
    const names = ['limited', 'hidden'];
    for (const name of names) {
      await api.addService(name);
      await api.addImage(`acme/${name}`, 'latest', digestOf('d'));
    }
    const spawned: string[] = [];
    for (const name of ['limited', 'hidden', 'limited', 'hidden']) {
      spawned.push((await api.post(`/v2/service/acme/${name}/connect`)).body.backend_id);
    }
    // More than one batch.
    await Promise.all(Array.from({ length: 3 }, async () => await copy(spawned[3] ?? '', 100)));
    const token = await api.tokenFor('acme', ['read']);
    await api.store.update(accessTokens, hashToken(token), (current) => ({
      ...current,
      services: ['limited', 'absent'],
    }));
    const own = [spawned[2], spawned[0]];
    const running = async (path: string) => (await api.get(path, token)).body;
    const ids = (body: Reply['body']) => body.running_backends.map(({ id }: { id: string }) => id);
    const whole = await running('/v2/account/acme/backends');
    expect([ids(whole), whole.next_cursor]).toEqual([own, undefined]);
    const first = await running('/v2/account/acme/backends?limit=1');
    expect(ids(first)).toEqual(own.slice(0, 1));
    const second = await running(`/v2/account/acme/backends?limit=1&cursor=${first.next_cursor}`);
    expect([ids(second), second.next_cursor]).toEqual([own.slice(1), undefined]);
    for (const path of ['/v2/account/acme/services', '/v1/user/acme/services', '/user/acme/services']) {
      expect((await api.get(path, token)).body.services).toEqual(['limited']);
    }
    expect((await api.get('/v2/account/acme/limits', token)).status).toBe(403);
  });

  test('cost the same for any number of ended backends', async () => {
    await api.addService('busy');
    await api.addImage('acme/busy', 'latest', digestOf('c'));
    const { backend_id: id } = (await api.post('/v2/service/acme/busy/connect')).body;
    await api.change(id, (backend) => becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, new Date()));
    await Promise.all(Array.from({ length: 15 }, async () => await copy(id, 100)));
    const { body } = await api.get('/v2/service/acme/busy/backends');
    expect([body.backends.length, typeof body.next_cursor]).toEqual([1000, 'string']);
  });

  test.each(['limit=0', 'limit=1001', 'limit=x', 'limit=1.5', 'cursor=x', 'cursor=WyJhIiwiYiJd', 'page=2'])(
    'reject %s',
    async (query) => {
      const { status, body } = await api.get(`${listPath}?${query}`);
      expect([status, body.error.code]).toEqual([400, 'BadRequest']);
    },
  );
});
