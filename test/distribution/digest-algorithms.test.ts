/** end-4c, and sha512 wherever the API has a digest. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { sha256, sha512 } from '../kit/registry/registry.ts';
import { json, onAllRegistries, types } from './fixture.ts';
import type { Document } from './fixture.ts';

onAllRegistries((fixture) => {
  test.each([
    ['announced', '?digest-algorithm=sha512', sha512],
    ['not announced', '', sha512],
    ['announced, and not used', '?digest-algorithm=sha512', sha256],
    ['announced although it is the default', '?digest-algorithm=sha256', sha256],
  ] as const)('%s, in chunks, also after a restart of every process', async (_name, query, digestOf) => {
    for (const restarts of [false, true]) {
      const repository = fixture.repository();
      const bytes = randomBytes(120_000);
      const location = await repository.begin(query);
      await repository.patch(location, bytes.subarray(0, 50_000), '0-49999');
      if (restarts) await fixture.registry.restart();
      await repository.patch(location, bytes.subarray(50_000), '50000-119999');
      const put = await repository.finish(location, digestOf(bytes));
      expect([put.status, put.headers['docker-content-digest']]).toEqual([201, digestOf(bytes)]);
      const pulled = await repository.send(String(put.headers.location));
      expect(pulled.headers['docker-content-digest']).toBe(digestOf(bytes));
      expect(pulled.body.equals(bytes)).toBe(true);
    }
  });

  test('an image with sha512 only, its index and its referrers', async () => {
    const repository = fixture.repository();
    const push = async (bytes: string, mediaType: string) => {
      const answer = await repository.finish(await repository.begin(), sha512(bytes), { body: bytes });
      expect(answer.status).toBe(201);
      return { mediaType, digest: sha512(bytes), size: bytes.length };
    };
    const put = async (document: Document & { mediaType: string }) => {
      const body = JSON.stringify(document);
      const answer = await repository.put(sha512(body), document);
      expect([answer.status, answer.headers['docker-content-digest']]).toEqual([201, sha512(body)]);
      return { mediaType: document.mediaType, digest: sha512(body), size: body.length };
    };
    const config = await push('{}', types.config);
    const layers = [await push('a layer', types.layer)];
    const image = await put({ schemaVersion: 2, mediaType: types.image, config, layers });
    const index = await put({ schemaVersion: 2, mediaType: types.index, manifests: [image] });
    const referrer = { schemaVersion: 2, mediaType: types.image, config, layers, subject: index };
    const pushed = await repository.put(sha512(JSON.stringify(referrer)), referrer);
    expect(pushed.headers['oci-subject']).toBe(index.digest);
    const listed = json(await repository.send(`referrers/${index.digest}`)) as { manifests: { digest: string }[] };
    expect(listed.manifests.map(({ digest }) => digest)).toEqual([sha512(JSON.stringify(referrer))]);
    expect((await repository.send(`manifests/${index.digest}`, { method: 'DELETE' })).status).toBe(202);
    expect((await repository.send(`manifests/${index.digest}`)).status).toBe(404);
  });

  test.each(['md5', 'sha1', 'SHA512', '', 'sha512,sha256', '__proto__'])(
    '"%s" is not an algorithm',
    async (algorithm) => {
      const query = `?digest-algorithm=${algorithm}`;
      const answer = await fixture.repository().send(`blobs/uploads/${query}`, { method: 'POST' });
      expect([answer.status, answer.code]).toEqual([400, 'DIGEST_INVALID']);
    },
  );
});
