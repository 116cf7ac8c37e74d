import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessTokens, hashToken } from '../../model/access-token.ts';
import { newService, services, withDeletion, withVisibility } from '../../model/service.ts';
import { openTestRegistry } from '../../test/kit/registry/registry.ts';
import type { Answer, TestRegistry } from '../../test/kit/registry/registry.ts';

let registry: TestRegistry;
beforeAll(async () => {
  registry = await openTestRegistry();
  for (const id of ['acme/a', 'acme/a-b', 'acme/a.b', 'acme/b', 'acme/z', 'other/open', 'other/secret', 'acmex/c']) {
    const [account = '', name = ''] = id.split('/');
    const service = newService({ account, name, cluster: 'main' }, new Date());
    await registry.store.insert(services, withVisibility(service, name === 'open'));
  }
});
afterAll(async () => await registry[Symbol.asyncDispose]());

const own = ['acme/a', 'acme/a-b', 'acme/a.b', 'acme/b', 'acme/z'];
const listed = ({ body }: Answer) => (JSON.parse(body.toString()) as { repositories: string[] }).repositories;

test('lists the repositories of the account, and none of other accounts, not even public ones', async () => {
  const answer = await registry.as('/v2/_catalog');
  expect([answer.status, answer.headers['content-type'], listed(answer)]).toEqual([200, 'application/json', own]);
  expect(answer.headers.link).toBeUndefined();
  const other = registry.basic('other', await registry.addToken('other', ['read']));
  const theirs = await registry.send('/v2/_catalog', { headers: { authorization: other } });
  expect(listed(theirs)).toEqual(['other/open', 'other/secret']);
});

test('a service that was deleted is not listed while its backends still end', async () => {
  const now = new Date();
  await registry.store.update(services, 'acme/b', (service) => withDeletion(service, now));
  const remaining = own.filter((name) => name !== 'acme/b');
  expect(listed(await registry.as('/v2/_catalog'))).toEqual(remaining);
  const page = await registry.as('/v2/_catalog?n=1&last=acme/a.b');
  expect([listed(page), page.headers.link]).toEqual([['acme/z'], undefined]);
  await registry.store.update(
    services,
    'acme/b',
    ({ deletedAt: _deletedAt, clearBefore: _clearBefore, ...service }) => service,
  );
});

test('lists only existing services of a token that is limited to services, by a login and by a grant, in pages', async () => {
  const token = await registry.addToken('acme', ['read']);
  const limited = ['z', 'absent', 'a.b', 'a-b'];
  await registry.store.update(accessTokens, hashToken(token), (current) => ({ ...current, services: limited }));
  const login = registry.basic('acme', token);
  const { body } = await registry.send('/token?scope=registry:catalog:*', { headers: { authorization: login } });
  const grant = `Bearer ${(JSON.parse(body.toString()) as { token: string }).token}`;
  for (const authorization of [login, grant]) {
    const list = async (path: string) => await registry.send(path, { headers: { authorization } });
    expect(listed(await list('/v2/_catalog'))).toEqual(['acme/a-b', 'acme/a.b', 'acme/z']);
    const first = await list('/v2/_catalog?n=1');
    expect([listed(first), first.headers.link]).toEqual([['acme/a-b'], expect.stringContaining('last=acme/a-b')]);
    expect(listed(await list('/v2/_catalog?n=5&last=acme/a-b'))).toEqual(['acme/a.b', 'acme/z']);
  }
  const pusher = registry.basic('acme', await registry.addToken('acme', ['push']));
  expect((await registry.send('/v2/_catalog', { headers: { authorization: pusher } })).status).toBe(403);
});

test('reads no more services of a limited token than its page can have', async () => {
  let reads = 0;
  await using counting = await openTestRegistry({
    beforeCall: async (method) => void (reads += method === 'get' ? 1 : 0),
  });
  const names = Array.from({ length: 200 }, (_, i) => `s${String(i).padStart(3, '0')}`);
  for (const name of ['s002', 's003', 's150']) {
    await counting.store.insert(services, newService({ account: 'acme', name, cluster: 'main' }, new Date()));
  }
  const token = await counting.addToken('acme', ['read']);
  await counting.store.update(accessTokens, hashToken(token), (current) => ({ ...current, services: names }));
  const headers = { authorization: counting.basic('acme', token) };
  const page = await counting.send('/v2/_catalog?n=1', { headers });
  expect(listed(page)).toEqual(['acme/s002']);
  // Two services at a time, and the documents of the log-in.
  expect(reads).toBeLessThan(20);
  expect(listed(await counting.send('/v2/_catalog?n=1&last=acme/s003', { headers }))).toEqual(['acme/s150']);
});

test('continues from page to page to the end', async () => {
  const seen: string[][] = [];
  for (let path: string | undefined = '/v2/_catalog?n=2'; path !== undefined;) {
    const answer: Answer = await registry.as(path);
    seen.push(listed(answer));
    path = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link))?.[1];
  }
  expect(seen).toEqual([own.slice(0, 2), own.slice(2, 4), own.slice(4)]);
  const exact = await registry.as('/v2/_catalog?n=5');
  expect([listed(exact), exact.headers.link]).toEqual([own, undefined]);
});

test('accepts any n and last', async () => {
  const of = async (query: string) => {
    const answer = await registry.as(`/v2/_catalog?${query}`);
    return answer.status === 200 ? listed(answer) : answer.status;
  };
  expect(await of('n=0')).toEqual([]);
  expect(await of('n=999999999999999')).toEqual(own);
  for (const query of ['n=-1', 'n=a', 'n=', 'n=1&n=2', 'last=a&last=b', 'n=1.5']) expect(await of(query)).toBe(400);
  expect(await of('last=acme/a')).toEqual(own.slice(1));
  expect(await of('last=acme/a%2Bz')).toEqual(own.slice(1));
  expect(await of('last=acme/zz')).toEqual([]);
  expect(await of('last=zzz')).toEqual([]);
  expect(await of('last=aaa')).toEqual(own);
  expect(await of('last=other/open')).toEqual([]);
  expect(await of('last=%0d%0ax:y')).toEqual(own);
});

test('accepts a grant for the catalogue, which only a token with the right to read can get', async () => {
  const challenged = await registry.send('/v2/_catalog');
  expect(challenged.headers['www-authenticate']).toContain('scope="registry:catalog:*"');
  const list = async (query: string, authorization: string) => {
    const { body } = await registry.send(`/token?${query}`, { headers: { authorization } });
    const { token } = JSON.parse(body.toString()) as { token: string };
    return await registry.send('/v2/_catalog', { headers: { authorization: `Bearer ${token}` } });
  };
  const reader = registry.basic('acme', registry.token);
  expect(listed(await list('scope=registry:catalog:*', reader))).toEqual(own);
  expect((await list('scope=repository:acme/a:pull', reader)).status).toBe(401);
  const pusher = registry.basic('acme', await registry.addToken('acme', ['push', 'connect', 'manage']));
  expect((await list('scope=registry:catalog:*', pusher)).status).toBe(401);
  const refused = await registry.send('/v2/_catalog', { headers: { authorization: pusher } });
  expect([refused.status, refused.code]).toEqual([403, 'DENIED']);
  expect((await registry.as('/v2/_catalog', { method: 'POST' })).status).toBe(405);
});
