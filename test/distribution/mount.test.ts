/** end-11: mounts of a blob of another repository, which clients need not push again. */
import { describe, expect, test } from 'vitest';
import type { Scope } from '../../contract/scopes.ts';
import { blobLinks, contentId } from '../../registry/content/documents.ts';
import { sha256 } from '../kit/registry/registry.ts';
import { json, onAllRegistries } from './fixture.ts';
import type { Repository } from './fixture.ts';

onAllRegistries((fixture) => {
  const mount = async (repository: Repository, query: string) =>
    await repository.send(`blobs/uploads/?${query}`, { method: 'POST', headers: { 'content-length': 0 } });

  test('mounts with `from`, without it, and with an escaped name', async () => {
    const source = fixture.repository();
    const { digest } = await source.blob('to mount');
    const queries = [
      `mount=${digest}&from=${source.name}`,
      `mount=${digest}`,
      `mount=${digest.replace(':', '%3A')}&from=${encodeURIComponent(source.name)}`,
    ];
    for (const query of queries) {
      const target = fixture.repository();
      const answer = await mount(target, query);
      expect([answer.status, answer.headers['docker-content-digest']]).toEqual([201, digest]);
      expect(answer.headers.location).toBe(target.path(`blobs/${digest}`));
      expect((await target.send(`blobs/${digest}`)).body.toString()).toBe('to mount');
    }
  });

  test('mounts a blob of the repository itself', async () => {
    const repository = fixture.repository();
    const { digest } = await repository.blob('mine already');
    expect((await mount(repository, `mount=${digest}&from=${repository.name}`)).status).toBe(201);
  });

  test.each([
    ['an unknown blob', (name: string) => `mount=${sha256('nowhere')}&from=${name}`],
    ['an unknown blob, without a source', () => `mount=${sha256('nowhere')}`],
    ['a blob from an unknown repository', () => `mount=${sha256('here')}&from=acme/nowhere`],
    ['a blob from an invalid repository name', () => `mount=${sha256('here')}&from=..%2f..%2fetc`],
    ['a blob from an empty name', () => `mount=${sha256('here')}&from=`],
  ])('a mount of %s starts an upload', async (_name, query) => {
    const source = fixture.repository();
    await source.blob('here');
    const target = fixture.repository();
    const answer = await mount(target, query(source.name));
    expect(answer.status).toBe(202);
    const bytes = 'sent after all';
    const put = await target.finish(String(answer.headers.location), sha256(bytes), { body: bytes });
    expect(put.status).toBe(201);
  });

  describe('with a grant to push only', () => {
    /** A grant to push to a repository, by an access token with these scopes. */
    const grantFor = async (name: string, account: string, scopes: readonly Scope[]) => {
      const authorization = fixture.registry.basic(account, await fixture.registry.addToken(account, scopes));
      const answer = await fixture.registry.send(`/token?scope=repository:${name}:push`, {
        headers: { authorization },
      });
      return { authorization: `Bearer ${(json(answer) as { token: string }).token}` };
    };
    const mountBy = async (headers: { authorization: string }, name: string, query: string) =>
      (await fixture.registry.send(`/v2/${name}/blobs/uploads/?${query}`, { method: 'POST', headers })).status;

    test('mounts from repositories of the account if its token may read, and cannot pull', async () => {
      const source = fixture.repository();
      const { digest } = await source.blob('of the same account');
      for (const query of [`mount=${digest}&from=${source.name}`, `mount=${digest}`]) {
        const { name } = fixture.repository();
        const headers = await grantFor(name, 'acme', ['read', 'push']);
        expect(await mountBy(headers, name, query)).toBe(201);
        expect((await fixture.registry.as(`/v2/${name}/blobs/${digest}`)).status).toBe(200);
        const pull = async (path: string) => (await fixture.registry.send(path, { headers })).status;
        expect(await pull(source.path(`blobs/${digest}`))).toBe(401);
        expect(await pull(`/v2/${name}/blobs/${digest}`)).toBe(401);
      }
    });

    test('cannot mount if the token may not read, from another account, or into another repository', async () => {
      const source = fixture.repository();
      const { digest } = await source.blob('for tokens that may read');
      const queries = [`mount=${digest}&from=${source.name}`, `mount=${digest}`];
      const { name } = fixture.repository();
      const pushOnly = await grantFor(name, 'acme', ['push']);
      for (const query of queries) expect(await mountBy(pushOnly, name, query)).toBe(202);
      const otherAccount = await grantFor('other/case', 'other', ['read', 'push']);
      for (const query of queries) expect(await mountBy(otherAccount, 'other/case', query)).toBe(202);
      const elsewhere = await grantFor(name, 'acme', ['read', 'push']);
      for (const query of queries) expect(await mountBy(elsewhere, fixture.repository().name, query)).toBe(401);
    });
  });

  test('a blob of hundreds of other repositories is found in one of the account', async () => {
    const repository = fixture.repository();
    const { digest } = await repository.blob('a base image of all repositories');
    const { store } = fixture.registry;
    const link = await store.get(blobLinks, contentId(repository.name, digest));
    if (!link) throw new Error('The blob is not linked');
    for (let at = 0; at < 120; at += 1) {
      const other = `aaa/case-${at}`;
      await store.insert(blobLinks, { ...link, id: contentId(other, digest), repository: other });
    }
    expect((await mount(fixture.repository(), `mount=${digest}`)).status).toBe(201);
  });

  test('a mounted blob remains when it is deleted in its source', async () => {
    const source = fixture.repository();
    const target = fixture.repository();
    const { digest } = await source.blob('kept by the other');
    await mount(target, `mount=${digest}&from=${source.name}`);
    expect((await source.send(`blobs/${digest}`, { method: 'DELETE' })).status).toBe(202);
    expect((await source.send(`blobs/${digest}`)).status).toBe(404);
    expect((await target.send(`blobs/${digest}`)).body.toString()).toBe('kept by the other');
    expect((await mount(fixture.repository(), `mount=${digest}&from=${source.name}`)).status).toBe(202);
  });
});
