import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { services, withVisibility } from '../../model/service.ts';
import { openTestRegistry, pushBlob, pushImage, sha256 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';

let registry: TestRegistry;
/** The credentials of another account. */
let other: string;
let digest: string;
const scope = 'scope=repository:acme/open:pull';
beforeAll(async () => {
  registry = await openTestRegistry();
  digest = (await pushBlob(registry, 'acme/open', 'bytes')).digest;
  await pushBlob(registry, 'acme/closed', 'bytes');
  for (const repository of ['acme/open', 'acme/closed']) await pushImage(registry, { repository, reference: 'latest' });
  await setPublic(true);
  other = registry.basic('other', await registry.addToken('other', ['push']));
});
afterAll(async () => await registry[Symbol.asyncDispose]());

async function setPublic(isPublic: boolean): Promise<void> {
  await registry.store.update(services, 'acme/open', (service) => withVisibility(service, isPublic));
}

async function grant(query: string, authorization?: string): Promise<{ scope: string; headers: OutgoingHttpHeaders }> {
  const answer = await registry.send(`/token?${query}`, { headers: authorization ? { authorization } : {} });
  expect(answer.status).toBe(200);
  const { token, scope } = JSON.parse(answer.body.toString()) as { token: string; scope: string };
  return { scope, headers: { authorization: `Bearer ${token}` } };
}

const reads = (repository: string) => [
  `/v2/${repository}/blobs/${digest}`,
  `/v2/${repository}/manifests/latest`,
  `/v2/${repository}/tags/list`,
  `/v2/${repository}/referrers/${digest}`,
];

test('clients pull public images without a login: challenge, anonymous grant, pull', async () => {
  for (const path of reads('acme/open')) {
    const challenged = await registry.send(path);
    expect([challenged.status, challenged.headers['www-authenticate']]).toEqual([
      401,
      expect.stringContaining('scope="repository:acme/open:pull"'),
    ]);
    const { headers } = await grant(scope);
    expect([path, (await registry.send(path, { headers })).status]).toEqual([path, 200]);
  }
});

test('public repositories allow pulls and nothing else', async () => {
  const wanted =
    'scope=repository:acme/open:pull,push,delete,*&scope=registry:catalog:*&scope=repository:acme/open/x:pull';
  const anonymous = await grant(wanted);
  expect(anonymous.scope).toBe('repository:acme/open:pull');
  const { headers } = anonymous;
  const writes = [
    ['POST', '/v2/acme/open/blobs/uploads/'],
    ['PUT', '/v2/acme/open/manifests/latest'],
    ['DELETE', '/v2/acme/open/manifests/latest'],
    ['DELETE', `/v2/acme/open/blobs/${digest}`],
    ['GET', '/v2/_catalog'],
  ] as const;
  for (const [method, path] of writes) {
    expect([path, (await registry.send(path, { method, headers })).status]).toEqual([path, 401]);
    expect([path, (await registry.send(path, { method, headers: { authorization: other } })).status]).toEqual([
      path,
      403,
    ]);
  }
});

test('another account pulls public images too, by a grant or its login', async () => {
  const { scope: granted, headers } = await grant(`${scope},push&scope=repository:acme/closed:pull`, other);
  expect(granted).toBe('repository:acme/open:pull');
  for (const path of reads('acme/open')) {
    expect((await registry.send(path, { headers })).status).toBe(200);
    expect((await registry.send(path, { headers: { authorization: other } })).status).toBe(200);
  }
});

test('a client cannot distinguish a private repository from an absent one', async () => {
  for (const authorization of [undefined, other]) {
    const headers = authorization ? { authorization } : {};
    expect((await grant('scope=repository:acme/closed:pull', authorization)).scope).toBe('');
    const { headers: granted } = await grant(scope, authorization);
    for (const sent of [headers, granted]) {
      const seen = async (path: string) => {
        const { status, body, headers: given } = await registry.send(path, { headers: sent });
        return [status, body.toString(), given['www-authenticate']?.replace(/closed|absent/, 'it')];
      };
      const closed = await Promise.all(reads('acme/closed').map(seen));
      const absent = await Promise.all(reads('acme/absent').map(seen));
      expect(closed).toEqual(absent);
      expect(closed.every(([status]) => status === 401 || status === 403)).toBe(true);
    }
  }
});

test('another account mounts from a public repository only with a grant that names it, or by its login', async () => {
  const target = 'scope=repository:other/copy:push';
  const mount = async (query: string, headers: OutgoingHttpHeaders) =>
    (await registry.send(`/v2/other/copy/blobs/uploads/?mount=${digest}${query}`, { method: 'POST', headers })).status;
  const { headers: narrow } = await grant(target, other);
  const { headers: wide } = await grant(`${target}&${scope}`, other);
  expect(await mount('&from=acme/open', narrow)).toBe(202);
  expect(await mount('&from=acme/closed', wide)).toBe(202);
  expect(await mount('&from=acme/closed', { authorization: other })).toBe(202);
  expect(await mount('', { authorization: other })).toBe(202);
  expect((await registry.send(`/v2/other/copy/blobs/${digest}`, { headers: narrow })).status).toBe(401);
  expect(await mount('&from=acme/open', wide)).toBe(201);
  const another = (await pushBlob(registry, 'acme/open', 'more bytes')).digest;
  const path = `/v2/other/copy/blobs/uploads/?mount=${another}&from=acme/open`;
  expect((await registry.send(path, { method: 'POST', headers: { authorization: other } })).status).toBe(201);
});

test('once a repository is private again, no new grants include it, and logins are rejected at once', async () => {
  await setPublic(false);
  expect((await grant(scope)).scope).toBe('');
  expect((await grant(scope, other)).scope).toBe('');
  const pull = await registry.send('/v2/acme/open/manifests/latest', { headers: { authorization: other } });
  expect([pull.status, pull.code]).toEqual([403, 'DENIED']);
  await setPublic(true);
  await registry.store.delete(services, 'acme/open');
  expect((await grant(scope)).scope).toBe('');
  expect(sha256('bytes')).toBe(digest);
});
