/** end-9, end-10: deleting tags, manifests and blobs, at once and in one repository only. */
import { expect, test } from 'vitest';
import { sha256 } from '../kit/registry.ts';
import { json, onEveryGround } from './stage.ts';

onEveryGround((stage) => {
  test('a tag: the tag only', async () => {
    const repository = stage.repository();
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

  test('a manifest: it and every tag to it, and no other', async () => {
    const repository = stage.repository();
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

  test('a blob: here, and nowhere else', async () => {
    const [repository, other] = [stage.repository(), stage.repository()];
    const { digest } = await repository.blob('in both');
    await other.blob('in both');
    expect((await repository.send(`blobs/${digest}`, { method: 'DELETE' })).status).toBe(202);
    for (const method of ['GET', 'HEAD']) {
      expect((await repository.send(`blobs/${digest}`, { method })).status).toBe(404);
      expect((await other.send(`blobs/${digest}`, { method })).status).toBe(200);
    }
    // Pushed again, it is back.
    await repository.blob('in both');
    expect((await repository.send(`blobs/${digest}`)).body.toString()).toBe('in both');
  });

  test.each([
    ['a tag', 'manifests/absent', 'MANIFEST_UNKNOWN'],
    ['a manifest', `manifests/${sha256('absent')}`, 'MANIFEST_UNKNOWN'],
    ['a blob', `blobs/${sha256('absent')}`, 'BLOB_UNKNOWN'],
  ])('%s that is not there', async (_name, path, code) => {
    const repository = stage.repository();
    await repository.put('here', await repository.image());
    const answer = await repository.send(path, { method: 'DELETE' });
    expect([answer.status, answer.code]).toEqual([404, code]);
  });
});
