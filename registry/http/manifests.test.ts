import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Readable } from 'node:stream';
import { findImage } from '../../model/image.ts';
import { services, withDeletion } from '../../model/service.ts';
import {
  openTestRegistry,
  pushBlob,
  pushImage,
  putManifest,
  sha256,
  sha512,
} from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';

let registry: TestRegistry;
beforeAll(async () => {
  registry = await openTestRegistry();
});
afterAll(async () => await registry[Symbol.asyncDispose]());

const imageType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';
const configType = 'application/vnd.oci.image.config.v1+json';
const layerType = 'application/vnd.oci.image.layer.v1.tar+gzip';

const put = async (path: string, body: string | Uint8Array | Readable, type: string | undefined = imageType) =>
  await registry.as(`/v2/${path}`, { method: 'PUT', headers: type ? { 'content-type': type } : {}, body });

async function imageOf(repository: string, extra: object = {}) {
  const config = await pushBlob(registry, repository, '{}');
  const layer = await pushBlob(registry, repository, 'layer');
  return {
    schemaVersion: 2,
    mediaType: imageType,
    config: { mediaType: configType, ...config },
    layers: [{ mediaType: layerType, ...layer }],
    ...extra,
  };
}

test('a manifest is returned byte for byte, with its pushed media type', async () => {
  const body = ` ${JSON.stringify(await imageOf('acme/bytes', { 'x-unknown': { kept: [1] } }), null, 3)}\n`;
  const pushed = await put('acme/bytes/manifests/v1', body, `${imageType}; charset=utf-8`);
  expect([pushed.status, pushed.headers.location]).toEqual([201, `/v2/acme/bytes/manifests/${sha256(body)}`]);
  expect(pushed.headers['docker-content-digest']).toBe(sha256(body));
  for (const reference of ['v1', sha256(body)]) {
    for (const method of ['GET', 'HEAD']) {
      const pulled = await registry.as(`/v2/acme/bytes/manifests/${reference}`, {
        method,
        headers: { accept: 'application/vnd.docker.distribution.manifest.v2+json' },
      });
      expect(pulled.headers['content-type']).toBe(imageType);
      expect(pulled.headers['content-length']).toBe(String(Buffer.byteLength(body)));
      expect(pulled.headers['docker-content-digest']).toBe(sha256(body));
      expect(pulled.body.toString()).toBe(method === 'GET' ? body : '');
    }
  }
});

test('accepts a push by digest, with sha512, and with tags in the query', async () => {
  const body = JSON.stringify(await imageOf('acme/digests'));
  const pushed = await put(`acme/digests/manifests/${sha512(body)}?tag=one&tag=two`, body);
  expect([pushed.status, pushed.headers['docker-content-digest']]).toEqual([201, sha512(body)]);
  expect(pushed.headers['oci-tag']).toBe('one, two');
  expect((await registry.as('/v2/acme/digests/manifests/two')).headers['docker-content-digest']).toBe(sha512(body));
  expect((await put(`acme/digests/manifests/${sha256('other')}`, body)).code).toBe('DIGEST_INVALID');
  expect((await put(`acme/digests/manifests/${sha256(body)}?tag=-`, body)).code).toBe('MANIFEST_INVALID');
  const many = Array.from({ length: 65 }, (_, at) => `tag=t${at}`).join('&');
  expect((await put(`acme/digests/manifests/${sha256(body)}?${many}`, body)).status).toBe(414);
});

test('rejects a manifest whose content is not in the repository', async () => {
  const image = await imageOf('acme/missing');
  expect((await put('acme/elsewhere/manifests/v1', JSON.stringify(image))).code).toBe('MANIFEST_BLOB_UNKNOWN');
  const absent = { mediaType: layerType, digest: sha256('absent'), size: 6 };
  const missing = await put('acme/missing/manifests/v1', JSON.stringify({ ...image, layers: [absent] }));
  expect([missing.status, missing.code]).toEqual([404, 'MANIFEST_BLOB_UNKNOWN']);
  expect(missing.body.toString()).toContain(sha256('absent'));
  const resized = { ...image, layers: [{ ...image.layers[0], size: 4 }] };
  expect((await put('acme/missing/manifests/v1', JSON.stringify(resized))).code).toBe('SIZE_INVALID');
  const foreign = { ...absent, mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip', urls: ['x'] };
  const distributed = { ...absent, mediaType: 'application/vnd.oci.image.layer.nondistributable.v1.tar' };
  const exempt = JSON.stringify({ ...image, layers: [foreign, distributed] });
  expect((await put('acme/missing/manifests/v1', exempt)).status).toBe(201);
});

test('an index may contain manifests and, as in build caches, blobs', async () => {
  const child = await pushImage(registry, { repository: 'acme/cache', reference: 'child' });
  const blob = await pushBlob(registry, 'acme/cache', 'cached layer');
  const size = (await registry.as('/v2/acme/cache/manifests/child')).body.length;
  const index = {
    schemaVersion: 2,
    mediaType: indexType,
    manifests: [
      { mediaType: imageType, digest: child.digest, size },
      { mediaType: layerType, ...blob },
    ],
  };
  expect((await putManifest(registry, { repository: 'acme/cache', reference: 'v1' }, index)).status).toBe(201);
  const broken = { ...index, manifests: [{ mediaType: imageType, digest: sha256('x'), size: 1 }] };
  expect((await putManifest(registry, { repository: 'acme/cache', reference: 'v1' }, broken)).status).toBe(404);
});

describe('hostile manifests', () => {
  const descriptor = { mediaType: configType, digest: sha256('{}'), size: 2 };
  test.each([
    ['text that is not JSON', 'x'],
    ['a byte order mark', `\uFEFF{"schemaVersion":2}`],
    ['broken UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['an array', '[]'],
    ['null', 'null'],
    ['depth', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['no config', JSON.stringify({ schemaVersion: 2, layers: [] })],
    ['another schema version', JSON.stringify({ schemaVersion: 1, config: descriptor, layers: [] })],
    [
      'an image that is an index too',
      JSON.stringify({ schemaVersion: 2, config: descriptor, layers: [], manifests: [] }),
    ],
    ['another mediaType', JSON.stringify({ schemaVersion: 2, mediaType: indexType, config: descriptor, layers: [] })],
    [
      'two spellings of a field',
      JSON.stringify({ schemaVersion: 2, config: descriptor, layers: [], Layers: [descriptor] }),
    ],
    ['inherited layers', `{"schemaVersion":2,"config":{},"__proto__":{"config":${JSON.stringify(descriptor)}}}`],
    ['a negative size', JSON.stringify({ schemaVersion: 2, config: { ...descriptor, size: -1 } })],
    ['a fraction as size', JSON.stringify({ schemaVersion: 2, config: { ...descriptor, size: 1.5 } })],
    [
      'a size beyond 2^53',
      `{"schemaVersion":2,"config":${JSON.stringify(descriptor).replace('2}', '9007199254740993}')}}`,
    ],
    ['a digest as path', JSON.stringify({ schemaVersion: 2, config: { ...descriptor, digest: 'sha256:../../etc' } })],
    [
      '20,000 layers',
      JSON.stringify({
        schemaVersion: 2,
        config: descriptor,
        layers: Array.from({ length: 20_000 }, () => descriptor),
      }),
    ],
    [
      'annotations that are not strings',
      JSON.stringify({ schemaVersion: 2, config: descriptor, annotations: { a: {} } }),
    ],
  ])('%s', async (_name, body) => {
    await pushBlob(registry, 'acme/hostile', '{}');
    const answer = await put('acme/hostile/manifests/v1', body);
    expect([answer.status, answer.code]).toEqual([400, 'MANIFEST_INVALID']);
  });

  test('rejects a missing or invalid type, and Docker’s first schema', async () => {
    const untyped = JSON.stringify({ schemaVersion: 2 });
    expect((await registry.as('/v2/acme/hostile/manifests/v1', { method: 'PUT', body: untyped })).status).toBe(400);
    expect((await put('acme/hostile/manifests/v1', untyped, 'text')).code).toBe('MANIFEST_INVALID');
    const outdated = 'application/vnd.docker.distribution.manifest.v1+prettyjws';
    expect((await put('acme/hostile/manifests/v1', untyped, outdated)).code).toBe('MANIFEST_INVALID');
  });

  test('accepts 4 MiB, and not one byte more, announced or endless', async () => {
    const image = JSON.stringify(await imageOf('acme/large'));
    const limit = 4 * 1024 * 1024;
    expect((await put('acme/large/manifests/v1', image.padEnd(limit))).status).toBe(201);
    const refused = await put('acme/large/manifests/v1', image.padEnd(limit + 1));
    expect([refused.status, refused.code]).toEqual([413, 'SIZE_INVALID']);
    const chunk = Buffer.alloc(1024 * 1024, 0x20);
    const endless = await put('acme/large/manifests/v1', Readable.from([chunk, chunk, chunk, chunk, chunk, chunk]));
    expect(endless.status).toBe(413);
  });
});

test('stores unknown media types', async () => {
  const type = 'application/vnd.example.thing.v3+json';
  const body = JSON.stringify({ anything: true });
  expect((await put('acme/unknown/manifests/v1', body, type)).status).toBe(201);
  expect((await registry.as('/v2/acme/unknown/manifests/v1')).headers['content-type']).toBe(type);
});

test('lists tags in byte order, in pages', async () => {
  const body = JSON.stringify(await imageOf('acme/tagged'));
  for (const tag of ['v1', 'v10', 'v2', 'V1', '_x', 'v1.0']) await put(`acme/tagged/manifests/${tag}`, body);
  const sorted = ['V1', '_x', 'v1', 'v1.0', 'v10', 'v2'];
  const list = async (query: string) => {
    const answer = await registry.as(`/v2/acme/tagged/tags/list${query}`);
    return { ...(JSON.parse(answer.body.toString()) as { tags: string[] }), link: answer.headers.link, answer };
  };
  expect((await list('')).tags).toEqual(sorted);
  expect((await list('')).answer.headers['content-type']).toBe('application/json');
  const first = await list('?n=4');
  expect(first.tags).toEqual(sorted.slice(0, 4));
  expect(first.link).toBe('</v2/acme/tagged/tags/list?n=4&last=v1.0>; rel="next"');
  expect(await list('?n=4&last=v1.0')).toMatchObject({ tags: sorted.slice(4), link: undefined });
  expect(await list('?n=6')).toMatchObject({ tags: sorted, link: undefined });
  expect(await list('?n=0')).toMatchObject({ tags: [], link: undefined });
  expect((await list('?n=1000000000')).tags).toEqual(sorted);
  expect((await list('?last=zzz')).tags).toEqual([]);
  expect((await list(`?n=1&last=${encodeURIComponent('\r\nx: y')}`)).link).toContain('last=V1');
  for (const n of ['-1', 'abc', '1.5', '', '1&n=2']) {
    expect((await registry.as(`/v2/acme/tagged/tags/list?n=${n}`)).status).toBe(400);
  }
  expect((await registry.as('/v2/acme/never/tags/list')).code).toBe('NAME_UNKNOWN');
});

test('deleting a tag keeps the manifest; deleting the manifest deletes every tag', async () => {
  const body = JSON.stringify(await imageOf('acme/deleted'));
  const path = '/v2/acme/deleted/manifests';
  for (const tag of ['a', 'b', 'c']) await put(`acme/deleted/manifests/${tag}`, body);
  expect((await registry.as(`${path}/a`, { method: 'DELETE' })).status).toBe(202);
  expect((await registry.as(`${path}/a`, { method: 'HEAD' })).status).toBe(404);
  expect((await registry.as(`${path}/a`, { method: 'DELETE' })).code).toBe('MANIFEST_UNKNOWN');
  expect((await registry.as(`${path}/b`)).status).toBe(200);
  expect((await registry.as(`${path}/${sha256(body)}`, { method: 'DELETE' })).status).toBe(202);
  for (const reference of ['b', 'c', sha256(body)]) {
    expect((await registry.as(`${path}/${reference}`)).code).toBe('MANIFEST_UNKNOWN');
  }
  const list = await registry.as('/v2/acme/deleted/tags/list');
  expect(JSON.parse(list.body.toString())).toEqual({ name: 'acme/deleted', tags: [] });
});

test('lists referrers, even of an absent subject', async () => {
  const subject = { mediaType: imageType, digest: sha256('absent'), size: 6 };
  const list = async (repository: string, query = '') => {
    const answer = await registry.as(`/v2/${repository}/referrers/${subject.digest}${query}`);
    expect([answer.status, answer.headers['content-type']]).toEqual([200, indexType]);
    const { manifests } = JSON.parse(answer.body.toString()) as { manifests: { digest: string }[] };
    return { manifests, headers: answer.headers };
  };
  expect((await list('acme/never')).manifests).toEqual([]);
  const annotations = { 'org.example.$dots.and': 'kept', __proto__x: 'y' };
  const bom = JSON.stringify(await imageOf('acme/refs', { subject, artifactType: 'application/vnd.bom', annotations }));
  const pushed = await put(`acme/refs/manifests/${sha256(bom)}`, bom);
  expect(pushed.headers['oci-subject']).toBe(subject.digest);
  const plain = JSON.stringify(await imageOf('acme/refs', { subject }));
  await put(`acme/refs/manifests/${sha256(plain)}`, plain);
  const index = JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: [], subject });
  await put(`acme/refs/manifests/${sha256(index)}`, index, indexType);
  const all = await list('acme/refs');
  expect(all.headers['oci-filters-applied']).toBeUndefined();
  const descriptors = [
    { mediaType: imageType, digest: sha256(bom), size: bom.length, artifactType: 'application/vnd.bom', annotations },
    { mediaType: imageType, digest: sha256(plain), size: plain.length, artifactType: configType },
    { mediaType: indexType, digest: sha256(index), size: index.length },
  ];
  expect(all.manifests.toSorted(byDigest)).toEqual(descriptors.toSorted(byDigest));
  const filtered = await list('acme/refs', '?artifactType=application/vnd.bom');
  expect(filtered.headers['oci-filters-applied']).toBe('artifactType');
  expect(filtered.manifests).toEqual([descriptors[0]]);
  expect((await registry.as('/v2/acme/refs/referrers/sha256:x')).status).toBe(400);
});

test('splits long lists of referrers into pages', async () => {
  const subject = { mediaType: imageType, digest: sha256('large'), size: 5 };
  const image = await imageOf('acme/pages', { subject });
  for (let at = 0; at < 6; at += 1) {
    const body = JSON.stringify({ ...image, annotations: { at: String(at), fill: 'x'.repeat(1_000_000) } });
    expect((await put(`acme/pages/manifests/${sha256(body)}`, body)).status).toBe(201);
  }
  const seen = new Set<string>();
  let path: string | undefined =
    `/v2/acme/pages/referrers/${subject.digest}?artifactType=${encodeURIComponent(configType)}`;
  let pages = 0;
  for (; path !== undefined && pages < 10; pages += 1) {
    const answer = await registry.as(path);
    expect(answer.body.length).toBeLessThanOrEqual(4 * 1024 * 1024);
    for (const { digest } of (JSON.parse(answer.body.toString()) as { manifests: { digest: string }[] }).manifests) {
      expect(seen.has(digest)).toBe(false);
      seen.add(digest);
    }
    path = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link))?.[1];
  }
  expect([seen.size, pages]).toEqual([6, 2]);
});

test.each(['gone', 'marked as deleted'])(
  'a deleted service whose document is %s has no images; a new one with its name starts empty',
  async (document) => {
    await pushImage(registry, { repository: 'acme/reborn', reference: 'old' });
    const at = await registry.store.now();
    if (document === 'gone') await registry.store.delete(services, 'acme/reborn');
    else await registry.store.update(services, 'acme/reborn', (service) => withDeletion(service, at));
    expect((await registry.as('/v2/acme/reborn/manifests/old')).code).toBe('NAME_UNKNOWN');
    expect((await registry.as('/v2/acme/reborn/tags/list')).code).toBe('NAME_UNKNOWN');
    await pushImage(registry, { repository: 'acme/reborn', reference: 'new' });
    const list = await registry.as('/v2/acme/reborn/tags/list');
    expect(JSON.parse(list.body.toString())).toEqual({ name: 'acme/reborn', tags: ['new'] });
    expect((await registry.as('/v2/acme/reborn/manifests/old')).code).toBe('MANIFEST_UNKNOWN');
    expect(await findImage(registry.store, 'acme/reborn', 'old')).toBeUndefined();
    expect((await registry.store.get(services, 'acme/reborn'))?.deletedAt).toBeUndefined();
  },
);

function byDigest(a: { digest: string }, b: { digest: string }): number {
  return a.digest < b.digest ? -1 : 1;
}
