/** end-1, end-2, end-3: determining support; pulling blobs and manifests, and checking whether they exist. */
import { expect, test } from 'vitest';
import { sha256 } from '../kit/registry/registry.ts';
import { onAllRegistries, types } from './fixture.ts';

onAllRegistries((fixture) => {
  test('the base path identifies a registry to a client with a login', async () => {
    for (const path of ['/v2/', '/v2']) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await fixture.registry.as(path, { method });
        expect([answer.status, answer.headers['docker-distribution-api-version']]).toEqual([200, 'registry/2.0']);
      }
    }
  });

  test('returns a blob with exact headers, for GET and HEAD', async () => {
    const repository = fixture.repository();
    const { digest } = await repository.blob('the bytes');
    for (const method of ['GET', 'HEAD']) {
      const answer = await repository.send(`blobs/${digest}`, {
        method,
        headers: { 'accept-encoding': 'zstd, gzip', accept: '*/*' },
      });
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({
        'content-type': types.octets,
        'content-length': '9',
        'docker-content-digest': digest,
      });
      expect(answer.headers['content-encoding']).toBeUndefined();
      expect(answer.headers['transfer-encoding']).toBeUndefined();
      expect(answer.body.toString()).toBe(method === 'GET' ? 'the bytes' : '');
    }
  });

  test('returns a manifest with exact headers, by tag and by digest, for any Accept header', async () => {
    const repository = fixture.repository();
    const body = ` ${JSON.stringify(await repository.image(), null, 3)}\n`;
    expect((await repository.put('v1', body)).status).toBe(201);
    const accepts = [{}, { accept: '*/*' }, { accept: [types.dockerImage, types.dockerList] }, { accept: 'text/html' }];
    for (const reference of ['v1', sha256(body)]) {
      for (const [at, headers] of accepts.entries()) {
        const method = at % 2 === 0 ? 'GET' : 'HEAD';
        const answer = await repository.send(`manifests/${reference}?ns=docker.io`, { method, headers });
        expect(answer.status).toBe(200);
        expect(answer.headers).toMatchObject({
          'content-type': types.image,
          'content-length': String(body.length),
          'docker-content-digest': sha256(body),
        });
        expect(answer.body.toString()).toBe(method === 'GET' ? body : '');
      }
    }
  });

  const absent = sha256('absent');
  test.each([
    ['a blob', `blobs/${absent}`, 'BLOB_UNKNOWN'],
    ['a manifest by digest', `manifests/${absent}`, 'MANIFEST_UNKNOWN'],
    ['a manifest by tag', 'manifests/absent', 'MANIFEST_UNKNOWN'],
  ])('GET and HEAD of %s that does not exist return 404', async (_name, path, code) => {
    const repository = fixture.repository();
    await repository.put('here', await repository.image());
    const get = await repository.send(path);
    expect([get.status, get.code, get.headers['content-type']]).toEqual([404, code, 'application/json']);
    const head = await repository.send(path, { method: 'HEAD' });
    expect([head.status, head.body.length]).toEqual([404, 0]);
  });

  test('a repository without a push has no content', async () => {
    const repository = fixture.repository();
    for (const path of [`blobs/${absent}`, `manifests/${absent}`, 'manifests/latest', 'tags/list']) {
      expect((await repository.send(path)).status).toBe(404);
    }
    for (const name of ['library/nginx', 'nginx', 'a/b/c/d', 'acme/with.dots__and-more']) {
      expect((await fixture.registry.as(`/v2/${name}/manifests/latest`)).status).toBeOneOf([403, 404]);
    }
  });

  test('does not send content again to a client that has it', async () => {
    const repository = fixture.repository();
    const { digest } = await repository.blob('cached');
    const manifest = await repository.manifest(await repository.image());
    for (const path of [`blobs/${digest}`, `manifests/${manifest.digest}`]) {
      const { etag } = (await repository.send(path)).headers;
      const again = await repository.send(path, { headers: { 'if-none-match': String(etag) } });
      expect([again.status, again.body.length]).toEqual([304, 0]);
    }
  });
});
