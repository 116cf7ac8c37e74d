/** end-9, end-10: deletions of tags, manifests and blobs, which are effective at once and in one repository only. */
import { expect, test } from 'vitest';
import { services } from '../../model/service.ts';
import { sha256 } from '../kit/registry/registry.ts';
import { json, onAllRegistries, types } from './fixture.ts';

onAllRegistries((fixture) => {
  test('deleting a tag deletes only the tag', async () => {
    const repository = fixture.repository();
    const image = await repository.image();
    for (const tag of ['a', 'b']) await repository.put(tag, image);
    expect((await repository.send('manifests/a', { method: 'DELETE' })).status).toBe(202);
    for (const method of ['GET', 'HEAD']) {
      expect((await repository.send('manifests/a', { method })).status).toBe(404);
      expect((await repository.send('manifests/b', { method })).status).toBe(200);
    }
    expect((await repository.send(`manifests/${sha256(JSON.stringify(image))}`)).status).toBe(200);
    expect(json(await repository.send('tags/list'))).toEqual({ name: repository.name, tags: ['b'] });
  });

  test('deleting a manifest deletes it and every tag that points to it, and no other tag', async () => {
    const repository = fixture.repository();
    const image = await repository.image();
    const digest = sha256(JSON.stringify(image));
    for (const tag of ['a', 'b', 'moved']) await repository.put(tag, image);
    await repository.put('moved', await repository.image({ annotations: { other: 'yes' } }));
    expect((await repository.send(`manifests/${digest}`, { method: 'DELETE' })).status).toBe(202);
    for (const reference of ['a', 'b', digest]) {
      const answer = await repository.send(`manifests/${reference}`);
      expect([answer.status, answer.code]).toEqual([404, 'MANIFEST_UNKNOWN']);
      expect((await repository.send(`manifests/${reference}`, { method: 'HEAD' })).status).toBe(404);
    }
    expect((await repository.send('manifests/moved')).status).toBe(200);
    expect(json(await repository.send('tags/list'))).toEqual({ name: repository.name, tags: ['moved'] });
    expect((await repository.put('a', image)).status).toBe(201);
    expect((await repository.send('manifests/a')).status).toBe(200);
  });

  test('deleting a blob deletes it in one repository only', async () => {
    const [repository, other] = [fixture.repository(), fixture.repository()];
    const { digest } = await repository.blob('in both');
    await other.blob('in both');
    expect((await repository.send(`blobs/${digest}`, { method: 'DELETE' })).status).toBe(202);
    for (const method of ['GET', 'HEAD']) {
      expect((await repository.send(`blobs/${digest}`, { method })).status).toBe(404);
      expect((await other.send(`blobs/${digest}`, { method })).status).toBe(200);
    }
    // Pushed again, it exists again.
    await repository.blob('in both');
    expect((await repository.send(`blobs/${digest}`)).body.toString()).toBe('in both');
  });

  test.each([
    ['a tag', 'manifests/absent', 'MANIFEST_UNKNOWN'],
    ['a manifest', `manifests/${sha256('absent')}`, 'MANIFEST_UNKNOWN'],
    ['a blob', `blobs/${sha256('absent')}`, 'BLOB_UNKNOWN'],
  ])('a deletion of %s that does not exist returns 404', async (_name, path, code) => {
    const repository = fixture.repository();
    await repository.put('here', await repository.image());
    const answer = await repository.send(path, { method: 'DELETE' });
    expect([answer.status, answer.code]).toEqual([404, code]);
  });

  test('the content of a deleted service is not found, and a new service of the same name starts empty', async () => {
    const repository = fixture.repository();
    const image = await repository.image();
    const { digest } = await repository.manifest(image);
    await repository.put('v1', image);
    const subject = { mediaType: types.image, digest, size: JSON.stringify(image).length };
    await repository.put('signed', await repository.image({ subject, artifactType: 'application/vnd.example.s' }));
    await fixture.registry.store.delete(services, repository.name);
    const answers = async () => {
      const ask = async (path: string, method = 'GET') => (await repository.send(path, { method })).status;
      return {
        byTag: await ask('manifests/v1'),
        byDigest: await ask(`manifests/${digest}`),
        head: await ask(`manifests/${digest}`, 'HEAD'),
        tags: await ask('tags/list'),
        referrers: (json(await repository.send(`referrers/${digest}`)) as { manifests: unknown[] }).manifests,
      };
    };
    const none = { byTag: 404, byDigest: 404, head: 404, referrers: [] };
    expect(await answers()).toEqual({ ...none, tags: 404 });
    expect((await repository.send('tags/list')).code).toBe('NAME_UNKNOWN');
    expect((await repository.send(`manifests/${digest}`, { method: 'DELETE' })).status).toBe(404);
    const { repositories } = json(await repository.send('/v2/_catalog')) as { repositories: string[] };
    expect(repositories).not.toContain(repository.name);
    // Its layers are kept for a while, so that clients need not push them again.
    expect((await repository.put('new', await repository.image({ annotations: { new: 'one' } }))).status).toBe(201);
    expect(await answers()).toEqual({ ...none, tags: 200 });
    expect(json(await repository.send('tags/list'))).toEqual({ name: repository.name, tags: ['new'] });
  });

  test('an index whose manifests disappear with their service is not stored, until they are pushed again', async () => {
    const repository = fixture.repository();
    const child = await repository.image();
    const { digest } = await repository.manifest(child);
    await fixture.registry.store.delete(services, repository.name);
    const size = JSON.stringify(child).length;
    const index = {
      schemaVersion: 2,
      mediaType: types.index,
      manifests: [{ mediaType: types.image, digest, size, platform: { os: 'linux', architecture: 'amd64' } }],
    };
    const answer = await repository.put('v1', index);
    expect([answer.status, answer.code]).toEqual([404, 'MANIFEST_BLOB_UNKNOWN']);
    expect((await repository.send('manifests/v1')).status).toBe(404);
    await repository.manifest(child);
    expect((await repository.put('v1', index)).status).toBe(201);
  });
});
