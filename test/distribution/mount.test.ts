/** end-11: a blob of another repository, without sending it again. */
import { expect, test } from 'vitest';
import { sha256 } from '../kit/registry.ts';
import { onEveryGround } from './stage.ts';
import type { Repository } from './stage.ts';

onEveryGround((stage) => {
  const mount = async (repository: Repository, query: string) =>
    await repository.send(`blobs/uploads/?${query}`, { method: 'POST', headers: { 'content-length': 0 } });

  test('with `from`, without it, and with the name escaped', async () => {
    const source = stage.repository();
    const { digest } = await source.blob('to mount');
    const queries = [
      `mount=${digest}&from=${source.name}`,
      `mount=${digest}`,
      `mount=${digest.replace(':', '%3A')}&from=${encodeURIComponent(source.name)}`,
    ];
    for (const query of queries) {
      const target = stage.repository();
      const answer = await mount(target, query);
      expect([answer.status, answer.headers['docker-content-digest']]).toEqual([201, digest]);
      expect(answer.headers.location).toBe(target.path(`blobs/${digest}`));
      expect((await target.send(`blobs/${digest}`)).body.toString()).toBe('to mount');
    }
  });

  test('of oneself', async () => {
    const repository = stage.repository();
    const { digest } = await repository.blob('mine already');
    expect((await mount(repository, `mount=${digest}&from=${repository.name}`)).status).toBe(201);
  });

  test.each([
    ['a blob that is nowhere', (name: string) => `mount=${sha256('nowhere')}&from=${name}`],
    ['a blob that is nowhere, from anywhere', () => `mount=${sha256('nowhere')}`],
    ['a repository that is nowhere', () => `mount=${sha256('here')}&from=acme/nowhere`],
    ['a name that no repository can have', () => `mount=${sha256('here')}&from=..%2f..%2fetc`],
    ['an empty name', () => `mount=${sha256('here')}&from=`],
  ])('%s is pushed instead', async (_name, query) => {
    const source = stage.repository();
    await source.blob('here');
    const target = stage.repository();
    const answer = await mount(target, query(source.name));
    expect(answer.status).toBe(202);
    const bytes = 'sent after all';
    const put = await target.finish(String(answer.headers.location), sha256(bytes), { body: bytes });
    expect(put.status).toBe(201);
  });

  test('a mounted blob stays when it is deleted where it came from', async () => {
    const source = stage.repository();
    const target = stage.repository();
    const { digest } = await source.blob('kept by the other');
    await mount(target, `mount=${digest}&from=${source.name}`);
    expect((await source.send(`blobs/${digest}`, { method: 'DELETE' })).status).toBe(202);
    expect((await source.send(`blobs/${digest}`)).status).toBe(404);
    expect((await target.send(`blobs/${digest}`)).body.toString()).toBe('kept by the other');
    expect((await mount(stage.repository(), `mount=${digest}&from=${source.name}`)).status).toBe(202);
  });
});
