/** end-7: pushes of manifests of every kind, which are stored byte for byte. */
import { expect, test } from 'vitest';
import { sha256, sha512 } from '../kit/registry/registry.ts';
import { onAllRegistries, types } from './fixture.ts';
import type { Descriptor, Document, Repository } from './fixture.ts';

const absent: Descriptor = { mediaType: types.layer, digest: sha256('never pushed'), size: 12 };

/** Manifests that must be accepted and returned unchanged. */
const kinds: Record<string, (repository: Repository) => Promise<Document>> = {
  'an image': async (repository) => await repository.image(),
  'an image without layers': async (repository) => await repository.image({ layers: [] }),
  'an image without a mediaType': async (repository) => {
    const { mediaType: _omitted, ...image } = await repository.image();
    return image;
  },
  'a Docker image': async (repository) => await repository.image({ mediaType: types.dockerImage }),
  'an artifact': async (repository) =>
    await repository.image({
      artifactType: 'application/vnd.example.sbom.v1',
      config: await repository.blob('{}', 'application/vnd.oci.empty.v1+json'),
    }),
  'descriptors with data': async (repository) =>
    await repository.image({ config: { ...(await repository.blob('{}', types.config)), data: 'e30=' } }),
  'unknown fields': async (repository) =>
    await repository.image({ 'org.example.field': { deep: [1, null, { a: 'b' }] }, annotations: { 'a.$b': 'c' } }),
  'layers that are stored elsewhere': async (repository) =>
    await repository.image({
      layers: [
        { ...absent, mediaType: 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip' },
        {
          ...absent,
          mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
          urls: ['https://x.example'],
        },
      ],
    }),
  'an index': async (repository) => ({
    schemaVersion: 2,
    mediaType: types.index,
    manifests: [
      { ...(await repository.manifest(await repository.image())), platform: { os: 'linux', architecture: 'amd64' } },
    ],
  }),
  'an index of an index': async (repository) => {
    const child = await repository.manifest(await repository.image());
    const inner = { schemaVersion: 2, mediaType: types.index, manifests: [child] };
    return { schemaVersion: 2, mediaType: types.index, manifests: [await repository.manifest(inner)] };
  },
  'an empty index': async () => ({ schemaVersion: 2, mediaType: types.index, manifests: [] }),
  'a Docker manifest list': async (repository) => ({
    schemaVersion: 2,
    mediaType: types.dockerList,
    manifests: [await repository.manifest(await repository.image({ mediaType: types.dockerImage }))],
  }),
  'an index of blobs, like that of a build cache': async (repository) => ({
    schemaVersion: 2,
    mediaType: types.index,
    manifests: [
      await repository.blob('a cached layer', types.layer),
      await repository.blob('{}', 'application/vnd.buildkit.cacheconfig.v0'),
    ],
  }),
  'an unknown type': async () => ({ mediaType: 'application/vnd.example.thing.v3+json', anything: [true] }),
};

onAllRegistries((fixture) => {
  test.each(Object.entries(kinds))('%s', async (_name, make) => {
    const repository = fixture.repository();
    const manifest = await make(repository);
    const body = `${JSON.stringify(manifest, null, 2)}\r\n `;
    const type = manifest.mediaType ?? types.image;
    for (const [reference, digest] of [
      ['tagged', sha256(body)],
      [sha256(body), sha256(body)],
      [sha512(body), sha512(body)],
    ] as const) {
      const pushed = await repository.put(reference, body, type);
      expect([pushed.status, pushed.headers['docker-content-digest']]).toEqual([201, digest]);
      expect(pushed.headers.location).toBe(repository.path(`manifests/${digest}`));
      const pulled = await repository.send(String(pushed.headers.location));
      expect([pulled.status, pulled.headers['content-type'], pulled.body.toString()]).toEqual([200, type, body]);
      expect(pulled.headers['docker-content-digest']).toBe(digest);
    }
  });

  test('parameters of the type are ignored', async () => {
    const repository = fixture.repository();
    expect((await repository.put('v1', await repository.image(), `${types.image}; charset=utf-8`)).status).toBe(201);
    const { headers } = await repository.send('manifests/v1', { method: 'HEAD' });
    expect(headers['content-type']).toBe(types.image);
  });

  test('accepts 4 MiB byte for byte, and not one byte more', async () => {
    const repository = fixture.repository();
    const limit = 4 * 1024 * 1024;
    const filled = Object.fromEntries(Array.from({ length: 390 }, (_, at) => [`key-${at}`, 'x'.repeat(10_000)]));
    const body = JSON.stringify(await repository.image({ annotations: filled })).padEnd(limit, '\n');
    expect((await repository.put('large', body)).status).toBe(201);
    const pulled = await repository.send('manifests/large');
    expect([pulled.headers['content-length'], sha256(pulled.body)]).toEqual([String(limit), sha256(body)]);
    const rejected = await repository.put('larger', `${body} `);
    expect([rejected.status, rejected.code]).toEqual([413, 'SIZE_INVALID']);
  });

  test('rejects the digest of other content', async () => {
    const repository = fixture.repository();
    const image = await repository.image();
    for (const digest of [sha256('other'), sha512('other'), 'sha256:short', `sha999:${'a'.repeat(64)}`]) {
      const answer = await repository.put(digest, image);
      expect([answer.status, answer.code]).toEqual([400, 'DIGEST_INVALID']);
    }
  });

  test.each([
    ['config', async (repository: Repository) => await repository.image({ config: absent })],
    ['layer', async (repository: Repository) => await repository.image({ layers: [absent] })],
    ['child', async () => ({ schemaVersion: 2, mediaType: types.index, manifests: [absent] })],
  ])('the error names a %s that was not pushed to the repository', async (_name, make) => {
    const repository = fixture.repository();
    const answer = await repository.put('v1', await make(repository));
    expect([answer.status, answer.code]).toEqual([404, 'MANIFEST_BLOB_UNKNOWN']);
    expect(answer.body.toString()).toContain(absent.digest);
    expect((await repository.send('manifests/v1')).status).toBe(404);
  });

  test('pushes by digest, with additional tags', async () => {
    const repository = fixture.repository();
    const body = JSON.stringify(await repository.image());
    const tags = Array.from({ length: 12 }, (_, at) => `v${at}.x_y-z`);
    const query = (list: readonly string[]) => list.map((tag) => `tag=${tag}`).join('&');
    for (const digest of [sha256(body), sha512(body)]) {
      const pushed = await repository.put(`${digest}?${query(tags)}`, body);
      expect([pushed.status, pushed.headers['oci-tag']]).toEqual([201, tags.join(', ')]);
      for (const tag of tags) {
        const { headers } = await repository.send(`manifests/${tag}`, { method: 'HEAD' });
        expect(headers['docker-content-digest']).toBe(digest);
      }
    }
    const many = Array.from({ length: 65 }, (_, at) => `many${at}`);
    expect((await repository.put(`${sha256(body)}?${query(many)}`, body)).status).toBe(414);
    const illegal = await repository.put(`${sha256(body)}?tag=good&tag=-bad`, body);
    expect([illegal.status, illegal.headers['oci-tag']]).toEqual([400, undefined]);
    expect((await repository.send('manifests/good')).status).toBe(404);
  });

  test('moves a tag, also to a manifest of another type', async () => {
    const repository = fixture.repository();
    const image = await repository.image();
    await repository.put('moving', image);
    const index = { schemaVersion: 2, mediaType: types.index, manifests: [await repository.manifest(image)] };
    expect((await repository.put('moving', index)).status).toBe(201);
    const moved = await repository.send('manifests/moving', { method: 'HEAD' });
    expect(moved.headers['content-type']).toBe(types.index);
    expect((await repository.send(`manifests/${sha256(JSON.stringify(image))}`)).status).toBe(200);
  });

  test.each(['-v1', '.v1', 'v'.repeat(129), 'v1$', 'v%201'])('"%s" is not a tag', async (tag) => {
    const repository = fixture.repository();
    const answer = await repository.put(tag, await repository.image());
    expect([answer.status, answer.code]).toEqual([400, 'MANIFEST_INVALID']);
  });

  test.each(['v', '_', 'V1.0-rc_2', 'v'.repeat(128), 'sha256-abc'])('"%.20s" is a tag', async (tag) => {
    const repository = fixture.repository();
    expect((await repository.put(tag, await repository.image())).status).toBe(201);
    expect((await repository.send(`manifests/${tag}`)).status).toBe(200);
  });
});
