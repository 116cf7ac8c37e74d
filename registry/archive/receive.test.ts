import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlobsError } from '../../core/blobs/blobs.ts';
import type { Blobs } from '../../core/blobs/blobs.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { ManualClock } from '../../core/clock/manual-clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { listen, newServer } from '../../core/http/listener.ts';
import { openLog } from '../../core/log/log.ts';
import { images } from '../../model/image.ts';
import { Refusal } from '../../model/refusal.ts';
import { services } from '../../model/service.ts';
import { noLimits, openTestRegistry, pushBlob, sha256 } from '../../test/kit/registry.ts';
import type { TestRegistry } from '../../test/kit/registry.ts';
import {
  blobEntry,
  blobOf,
  configOf,
  imageOf,
  indexOf,
  layoutOf,
  ociIndexType,
  savedOf,
  tarOf,
} from '../../test/kit/archives.ts';
import type { TestEntry } from '../../test/kit/archives.ts';
import { defaultCollectionSettings } from '../collection/settings.ts';
import { openImageArchives } from './image-archives.ts';
import type { RegistryLimits } from '../quota/limits.ts';
import type { Quota } from '../quota/quota.ts';
import type { ArchiveLimits } from './limits.ts';

interface Answer {
  readonly code?: string;
  readonly message?: string;
  readonly digest?: string;
  readonly tag?: string;
}

const mebibyte = 1024 * 1024;
const repository = 'acme/app';

let registry: TestRegistry;
let owned: AsyncDisposableStack;
let fault: BlobsError | undefined;
/** What tells how long a client was waited for. */
let clock: Clock;
/** Aborts what is under way, as when the platform stops. */
let closing: AbortController;

beforeEach(async () => {
  owned = new AsyncDisposableStack();
  registry = owned.use(await openTestRegistry());
  fault = undefined;
  clock = systemClock;
  closing = new AbortController();
});
afterEach(() => owned.disposeAsync());

/** A server that takes archives and answers with the image, or the code of the refusal. */
async function open(
  archiveLimits: Partial<ArchiveLimits> = {},
  limits: Partial<RegistryLimits> = {},
  quota?: Quota,
): Promise<string> {
  const blobs: Blobs = new Proxy(registry.blobs, {
    get: (target, name) => {
      if (name === 'appendUpload' && fault) throw fault;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const archives = owned.use(
    openImageArchives({
      ...registry,
      blobs,
      quota,
      collection: defaultCollectionSettings,
      clock,
      log: openLog('silent'),
      defaultCluster: 'main',
      publicUrl: undefined,
      registryHost: 'registry.test',
      maxArchiveBytes: 64 * mebibyte,
      archiveLimits,
      limits: { ...noLimits, ...limits },
      bus: openInProcessBus({ log: openLog('silent') }),
      behindLoadBalancer: false,
    }),
  );
  const server = newServer();
  server.on('request', (request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const query = new URL(request.url ?? '', 'http://localhost').searchParams;
    const wish = { tag: query.get('tag') ?? undefined, image: query.get('image') ?? undefined };
    const work = archives.receive({
      repository,
      by: 'acme',
      request,
      response,
      wish,
      signal: AbortSignal.any([gone.signal, closing.signal]),
    });
    void work.then(
      ({ digest, tag }) => response.end(JSON.stringify({ digest, tag })),
      (error: unknown) => {
        const about = error instanceof Refusal ? { code: error.code, message: error.message } : { code: String(error) };
        response.end(JSON.stringify(about));
        settled.push(about.code);
      },
    );
  });
  const settled: string[] = [];
  const listener = owned.use(await listen(server, { host: '127.0.0.1', port: 0, drainMs: 100 }));
  return `http://127.0.0.1:${listener.port}/`;
}

/** Sends an archive as a form, with text fields after the file, where they are found last. */
async function send(url: string, archive: Uint8Array, fields: Record<string, string> = {}): Promise<Answer> {
  const body = new FormData();
  body.append('archive', new Blob([Buffer.from(archive)]), 'image.tar');
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  return (await (await fetch(url, { method: 'POST', body })).json()) as Answer;
}

async function sendEntries(
  url: string,
  entries: readonly TestEntry[],
  fields?: Record<string, string>,
): Promise<Answer> {
  return await send(url, await tarOf(entries), fields);
}

async function tagsOf(): Promise<string[]> {
  const { body } = await registry.as(`/v2/${repository}/tags/list`);
  return (JSON.parse(body.toString()) as { tags: string[] }).tags;
}

async function uploadsLeft(): Promise<string[]> {
  const ids: string[] = [];
  for await (const id of registry.blobs.listUploads()) ids.push(id);
  return ids;
}

/** What a refusal says, once it is sure that nothing was left that can be seen. */
async function refusalOf(answer: Answer, code = 'BadRequest'): Promise<string> {
  expect(answer).toEqual({ code, message: expect.any(String) });
  expect(await uploadsLeft()).toEqual([]);
  expect(await registry.store.get(services, repository)).toBeUndefined();
  expect(await registry.store.find(images, { index: 'byTime', equals: { repository } })).toEqual([]);
  return answer.message ?? '';
}

describe('what is taken', () => {
  test('an archive of docker save, whatever its order: the same digest each time, and a duplicate layer by its link', async () => {
    const url = await open();
    const entries = savedOf(['first', 'second', 'first']);
    const answer = await sendEntries(url, entries);
    expect(answer).toEqual({ digest: expect.stringMatching(/^sha256:/), tag: 'v1' });
    expect(await sendEntries(url, entries.toReversed())).toEqual(answer);
    const { manifest } = imageOf(['first', 'second', 'first']);
    const pulled = await registry.as(`/v2/${repository}/manifests/v1`);
    expect([pulled.body.toString(), answer.digest]).toEqual([manifest.bytes.toString(), manifest.digest]);
    expect((await registry.as(`/v2/${repository}/blobs/${blobOf('second').digest}`)).body.toString()).toBe('second');
    expect(await uploadsLeft()).toEqual([]);
  });

  test('plain, gzip and zstd, in several pieces too, in a form or as the body', async () => {
    const url = await open();
    const tar = await tarOf(savedOf(['a layer', randomBytes(300_000)]));
    const { digest } = await send(url, tar);
    const halves = [tar.subarray(0, 100_001), tar.subarray(100_001)];
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7]);
    const forms = {
      gzip: gzipSync(tar),
      members: Buffer.concat(halves.map((half) => gzipSync(half))),
      zstd: zstdCompressSync(tar),
      frames: Buffer.concat([skippable, ...halves.map((half) => zstdCompressSync(half)), skippable]),
    };
    for (const [tag, bytes] of Object.entries(forms)) expect(await send(url, bytes, { tag })).toEqual({ digest, tag });
    const headers = { 'content-type': 'application/x-tar' };
    const raw = await fetch(`${url}?tag=raw`, { method: 'POST', headers, body: new Uint8Array(forms.frames) });
    expect(await raw.json()).toEqual({ digest, tag: 'raw' });
    expect(await tagsOf()).toEqual(['frames', 'gzip', 'members', 'raw', 'v1', 'zstd']);
  });

  test('compressed layers are kept as they are, and called what they are', async () => {
    const url = await open();
    const layer = blobOf('a layer');
    const gzipped = gzipSync(layer.bytes);
    const config = configOf([layer]);
    const answer = await sendEntries(url, [
      { name: 'config', content: config.bytes },
      { name: 'layer.tar.gz', content: gzipped },
      { name: 'manifest.json', content: JSON.stringify([{ Config: 'config', Layers: ['./layer.tar.gz'] }]) },
    ]);
    expect(answer).toMatchObject({ tag: 'latest' });
    const { body } = await registry.as(`/v2/${repository}/manifests/latest`);
    expect((JSON.parse(body.toString()) as { layers: unknown }).layers).toEqual([
      {
        mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
        digest: blobOf(gzipped).digest,
        size: gzipped.length,
      },
    ]);
  });

  test('an OCI layout with a nested index, byte for byte, with all its platforms', async () => {
    const url = await open();
    const platforms = [imageOf(['amd64']), imageOf(['arm64'], { architecture: 'arm64' })];
    const inner = indexOf(platforms.map(({ manifest }) => manifest));
    const outer = indexOf([inner], { mediaType: ociIndexType });
    const blobs = [...platforms.flatMap(({ layers, config, manifest }) => [...layers, config, manifest]), inner, outer];
    const layout = layoutOf(blobs, [{ blob: outer, mediaType: ociIndexType, name: 'registry.test:5000/x/app:multi' }]);
    expect(await sendEntries(url, layout)).toEqual({ digest: outer.digest, tag: 'multi' });
    for (const { digest, bytes } of [outer, inner, ...platforms.map(({ manifest }) => manifest)]) {
      expect((await registry.as(`/v2/${repository}/manifests/${digest}`)).body.toString()).toBe(bytes.toString());
    }
    const image = platforms[1]?.manifest.digest ?? '';
    expect(await sendEntries(url, layout, { image, tag: 'arm' })).toEqual({ digest: image, tag: 'arm' });
  });

  test('all tags that an image has in the archive, unless one is sent', async () => {
    const url = await open();
    await sendEntries(url, savedOf(['x'], { tags: ['localhost:5000/a/b:one', 'c:two'] }));
    expect(await tagsOf()).toEqual(['one', 'two']);
    expect(await sendEntries(url, savedOf(['x'], { tags: ['a:one'] }), { tag: 'mine' })).toMatchObject({ tag: 'mine' });
    expect(await sendEntries(url, savedOf(['x'], { tags: [] }))).toMatchObject({ tag: 'latest' });
    expect(await tagsOf()).toEqual(['latest', 'mine', 'one', 'two']);
  });

  test('one of several images, by name, tag or digest', async () => {
    const url = await open();
    const [first, second] = [imageOf(['first']), imageOf(['second'])];
    const blobs = [first, second].flatMap(({ layers, config, manifest }) => [...layers, config, manifest]);
    const layout = layoutOf(blobs, [
      { blob: first.manifest, name: 'docker.io/x/app:v1' },
      { blob: second.manifest, name: 'docker.io/x/app:v2' },
    ]);
    expect(await refusalOf(await sendEntries(url, layout))).toMatch(/holds 2 images.*x\/app:v1.*x\/app:v2/);
    expect(await refusalOf(await sendEntries(url, layout, { image: 'v3' }))).toMatch(/no image "v3", but docker/);
    for (const image of ['v2', 'x/app:v2', 'docker.io/x/app:v2', second.manifest.digest]) {
      expect(await sendEntries(url, layout, { image })).toEqual({ digest: second.manifest.digest, tag: 'v2' });
    }
    const [a, b] = [savedOf(['a'], { tags: ['x:a'] }), savedOf(['b'], { tags: ['x:b'] })];
    const renamed = b.map((entry) => ({ ...entry, name: entry.name.replace('layer-0', 'other') }));
    const lists = [a, b].map(
      (entries) => JSON.parse(String(entries.find(({ name }) => name === 'manifest.json')?.content)) as object[],
    );
    const content = JSON.stringify(lists.flat()).replace(/(.*)layer-0/, '$1other');
    const isOwn = ({ name }: TestEntry) => !['manifest.json', 'repositories'].includes(name);
    const both = [...a.filter(isOwn), ...renamed.filter(isOwn), { name: 'manifest.json', content }];
    expect(await sendEntries(url, both, { image: 'b' })).toMatchObject({ tag: 'b' });
  });

  test('content that the repository has need not be in the archive, and is not stored again', async () => {
    const url = await open();
    const { layers, config, manifest } = imageOf(['a layer']);
    const first = await sendEntries(url, layoutOf([...layers, config, manifest], [{ blob: manifest }]));
    fault = new BlobsError('no-space', 'No space');
    expect(await sendEntries(url, layoutOf([config, manifest], [{ blob: manifest }]))).toEqual(first);
  });
});

describe('what is refused', () => {
  test('what is no archive, or no whole one', async () => {
    const url = await open();
    const tar = await tarOf(savedOf([randomBytes(20_000)]));
    expect(await refusalOf(await send(url, Buffer.from('hello '.repeat(1000))))).toMatch(/not a whole tar/);
    expect(await refusalOf(await send(url, await tarOf([])))).toMatch(/has no entries/);
    expect(await refusalOf(await send(url, await tarOf([{ name: 'README', content: 'x' }])))).toMatch(
      /neither of `docker save`/,
    );
    expect(await refusalOf(await send(url, gzipSync(gzipSync(tar))))).toMatch(/compressed twice/);
    expect(await refusalOf(await send(url, Buffer.concat([tar, randomBytes(1024)])))).toMatch(/not a whole tar/);
    expect(await refusalOf(await send(url, Buffer.concat([gzipSync(tar), randomBytes(64)])))).toMatch(
      /damaged or cut off/,
    );
    expect(await refusalOf(await send(url, Buffer.concat([zstdCompressSync(tar), randomBytes(64)])))).toMatch(
      /damaged or cut off/,
    );
    const damaged = Buffer.from(zstdCompressSync(tar));
    damaged[5000]! ^= 0xff;
    expect((await send(url, damaged)).code).toBe('BadRequest');
  });

  test('an archive that is cut off anywhere', async () => {
    const url = await open();
    const tar = await tarOf(savedOf([randomBytes(2_000)], { tags: ['x:cut'] }));
    // The last three blocks are an entry that nobody needs and the end.
    const needed = tar.indexOf('repositories');
    for (const bytes of [tar.subarray(0, needed), gzipSync(tar), zstdCompressSync(tar)]) {
      for (const part of [0.05, 0.3, 0.55, 0.8, 0.97]) {
        const cut = bytes.subarray(0, Math.floor(bytes.length * part));
        expect(await refusalOf(await send(url, cut))).toMatch(/archive/);
      }
    }
  });

  test('content that is not what its digest, size or place says', async () => {
    const url = await open();
    const { layers, config, manifest } = imageOf(['a layer']);
    const [layer = blobOf('')] = layers;
    const layout = (...blobs: TestEntry[]) => [...blobs, ...layoutOf([config, manifest], [{ blob: manifest }])];
    const wrong = { ...blobEntry(layer), content: 'another' };
    expect(await refusalOf(await sendEntries(url, layout(wrong)))).toMatch(/is damaged: the content of "blobs\/sha256/);
    expect(await refusalOf(await sendEntries(url, layout()))).toMatch(
      new RegExp(`not in this repository: ${layer.digest}`),
    );
    const lying = blobOf(manifest.bytes.toString().replace(`"size":${layer.size}}]`, `"size":9}]`));
    const sizes = layoutOf([layer, config, lying], [{ blob: lying }]);
    expect(await refusalOf(await sendEntries(url, sizes))).toMatch(/has 7 bytes of .*, its manifest says 9/);
    const shortIndex = layoutOf([layer, config, manifest], [{ blob: { ...manifest, size: 9 } }]);
    expect(await refusalOf(await sendEntries(url, shortIndex))).toMatch(/its index.json says 9/);
    const swapped = savedOf(['a layer']).map((entry) =>
      entry.name.endsWith('layer.tar') ? { ...entry, content: 'another' } : entry,
    );
    expect(await refusalOf(await sendEntries(url, swapped))).toMatch(/has the layer .* in place of/);
    const fewer = savedOf(['a layer', 'another']).map((entry) =>
      entry.name === 'manifest.json'
        ? { ...entry, content: String(entry.content).replace(',"layer-1/layer.tar"', '') }
        : entry,
    );
    expect(await refusalOf(await sendEntries(url, fewer))).toMatch(/has 1 layers for an image of 2/);
    const index = indexOf([manifest, imageOf(['absent']).manifest]);
    const sparse = layoutOf([layer, config, manifest, index], [{ blob: index, mediaType: ociIndexType }]);
    expect(await refusalOf(await sendEntries(url, sparse))).toMatch(/which its index names: save all platforms/);
  });

  test('documents that cannot be understood', async () => {
    const url = await open();
    const saved = (content: string) => [{ name: 'manifest.json', content }];
    for (const content of ['', '[', '{}', '[{}]', '[{"Config":1}]', '"x"', '\u0000', '['.repeat(100_000)]) {
      expect(await refusalOf(await sendEntries(url, saved(content)))).toMatch(
        /manifest.json that cannot be understood/,
      );
    }
    expect(await refusalOf(await sendEntries(url, saved('[]')))).toMatch(/holds no image/);
    expect(await refusalOf(await sendEntries(url, saved('[{"Config":"x"}]')))).toMatch(
      /names "x" and does not have it/,
    );
    const notConfig = [
      { name: 'x', content: '[' },
      { name: 'manifest.json', content: '[{"Config":"x"}]' },
    ];
    expect(await refusalOf(await sendEntries(url, notConfig))).toMatch(/config that cannot be understood/);
    const artifact = blobOf({
      schemaVersion: 2,
      config: { mediaType: 'application/x', digest: blobOf('{}').digest, size: 2 },
      layers: [],
    });
    const layout = layoutOf([blobOf('{}'), artifact], [{ blob: artifact }]);
    expect(await refusalOf(await sendEntries(url, layout))).toMatch(/holds no image of a container/);
  });

  test.each<[string, TestEntry | TestEntry[], RegExp]>([
    ['a name that leads out', { name: '../x', content: 'x' }, /leads out of it/],
    ['a name that leads out later', { name: 'a/../../x', content: 'x' }, /leads out of it/],
    ['an absolute name', { name: '/etc/passwd', content: 'x' }, /leads out of it/],
    ['a link that leads out', { name: 'x', type: 'symlink', linkname: '../../etc/passwd' }, /leads out of it/],
    ['a link to the folder above', { name: 'x', type: 'symlink', linkname: '..' }, /leads out of it/],
    ['an absolute link', { name: 'x', type: 'symlink', linkname: '/etc/passwd' }, /does not stay inside/],
    ['a hard link that leads out', { name: 'x', type: 'link', linkname: '../x' }, /leads out of it/],
    ['a device', { name: 'x', type: 'character-device', devmajor: 1, devminor: 3 }, /neither file, folder nor link/],
    ['a pipe', { name: 'x', type: 'fifo' }, /neither file, folder nor link/],
    ['a sparse file', { name: 'x', content: 'x', pax: { 'GNU.sparse.major': '1' } }, /sparse/],
    ['two entries of one name', [{ name: 'x' }, { name: './x' }], /two entries named "x"/],
    ['a name that is too long', { name: `${'x'.repeat(99)}/`.repeat(30), content: 'x' }, /name is too long/],
  ])('%s', async (_what, entry, message) => {
    const url = await open();
    expect(await refusalOf(await sendEntries(url, [...savedOf(['x']), ...[entry].flat()]))).toMatch(message);
  });

  test('links in circles', async () => {
    const url = await open();
    const circle: TestEntry[] = [
      { name: 'a', type: 'symlink', linkname: 'b' },
      { name: 'b', type: 'symlink', linkname: 'a' },
      { name: 'manifest.json', content: '[{"Config":"a"}]' },
    ];
    expect(await refusalOf(await sendEntries(url, circle))).toMatch(/links that lead nowhere/);
  });

  test('more than the limits allow', async () => {
    const big = savedOf([randomBytes(300_000), randomBytes(300_000)]);
    expect(await refusalOf(await sendEntries(await open({ maxBytes: 200_000 }), big), 'PayloadTooLarge')).toMatch(
      /an entry of more than 200000 bytes/,
    );
    expect(await refusalOf(await sendEntries(await open({ maxBytes: 500_000 }), big), 'PayloadTooLarge')).toMatch(
      /unpacks to more than 500000 bytes/,
    );
    expect(await refusalOf(await sendEntries(await open({ maxEntries: 5 }), big), 'PayloadTooLarge')).toMatch(
      /more than 5 entries/,
    );
    const zeros = gzipSync(await tarOf(savedOf([Buffer.alloc(mebibyte)])));
    const bomb = await open({ ratioFromBytes: 500_000, maxRatio: 100 });
    expect(await refusalOf(await send(bomb, zeros), 'PayloadTooLarge')).toMatch(/more than 100 times its size/);
    expect((await send(await open({ ratioFromBytes: 2 * mebibyte }), zeros)).tag).toBe('v1');
  });

  test('documents, manifests and configs of more than fits into memory', async () => {
    const url = await open();
    const huge = ' '.repeat(4 * mebibyte + 1);
    expect(await refusalOf(await sendEntries(url, [{ name: 'manifest.json', content: huge }]))).toMatch(
      /manifest.json of more than/,
    );
    const manifest = blobOf(huge);
    expect(await refusalOf(await sendEntries(url, layoutOf([manifest], [{ blob: manifest }])))).toMatch(
      /a manifest of more than/,
    );
    const config = blobOf(`{}${huge}`);
    const saved = [
      { name: 'c', content: config.bytes },
      { name: 'manifest.json', content: '[{"Config":"c"}]' },
    ];
    expect(await refusalOf(await sendEntries(url, saved))).toMatch(/a config of more than/);
    const images = Array.from({ length: 4 }, (_, i) => imageOf([`layer ${i}`]));
    const index = indexOf(images.map(({ manifest }) => manifest));
    const blobs = [...images.flatMap(({ layers, config, manifest }) => [...layers, config, manifest]), index];
    const layout = layoutOf(blobs, [{ blob: index, mediaType: ociIndexType }]);
    expect(await refusalOf(await sendEntries(await open({ maxManifests: 4 }), layout), 'PayloadTooLarge')).toMatch(
      /more than 4 manifests/,
    );
    const nested = [imageOf(['x']).manifest];
    for (let i = 0; i < 6; i += 1)
      nested.unshift(indexOf(nested.slice(0, 1), i === 0 ? {} : { mediaType: ociIndexType }));
    const deep = layoutOf(
      [...nested, ...imageOf(['x']).layers, imageOf(['x']).config],
      [{ blob: nested[0] ?? blobOf(''), mediaType: ociIndexType }],
    );
    expect(await refusalOf(await sendEntries(url, deep))).toMatch(/nested deeper than 4 levels/);
  });

  test('forms that are not what is asked for', async () => {
    const url = await open();
    const tar = new Blob([Buffer.from(await tarOf(savedOf(['x'])))]);
    const post = async (fields: [string, Blob | string][]) => {
      const body = new FormData();
      for (const [name, value] of fields) {
        if (typeof value === 'string') body.append(name, value);
        else body.append(name, value, 'image.tar');
      }
      return (await (await fetch(url, { method: 'POST', body })).json()) as Answer;
    };
    expect(await refusalOf(await post([['file', tar]]))).toMatch(/one file, in the field "archive", not in "file"/);
    expect(await refusalOf(await post([['tag', 'v1']]))).toMatch(/no file in the field "archive"/);
    expect(await refusalOf(await post([['archive', 'text']]))).toMatch(/no file in the field "archive"/);
    expect(
      (
        await post([
          ['archive', tar],
          ['tag', 'no tag'],
        ])
      ).message,
    ).toMatch(/^tag: Use up to 128/);
    expect(
      (
        await post([
          ['archive', tar],
          ['extra', 'x'],
        ])
      ).code,
    ).toMatch(/extra/);
    expect(
      (
        await post([
          ['archive', tar],
          ['archive', tar],
        ])
      ).message,
    ).toMatch(/one file/);
    expect(
      (
        await post([
          ['archive', tar],
          ['tag', 'x'.repeat(600)],
        ])
      ).message,
    ).toMatch(/Field value too long/);
    const raw = async (type: string, body: string) =>
      (await (await fetch(url, { method: 'POST', headers: { 'content-type': type }, body })).json()) as Answer;
    expect(await raw('application/json', '{}')).toMatchObject({ code: 'UnsupportedMediaType' });
    expect((await raw('multipart/form-data', 'x')).message).toMatch(/form cannot be read/);
    expect((await raw('multipart/form-data; boundary=x', '--x\r\n')).message).toMatch(/form cannot be read/);
    expect((await raw('application/x-tar', '')).message).toMatch(/is empty/);
    expect(await uploadsLeft()).toEqual([]);
  });

  test('what there is no room for', async () => {
    const url = await open();
    fault = new BlobsError('no-space', 'No space left on device');
    expect(await refusalOf(await sendEntries(url, savedOf(['x'])), 'InsufficientStorage')).toMatch(/no space left/);
    fault = new BlobsError('unavailable', 'Gone');
    expect(await refusalOf(await sendEntries(url, savedOf(['x'])), 'Unavailable')).toMatch(/down for a moment/);
    fault = undefined;
    const [small, large] = [savedOf(['x']), savedOf([randomBytes(100_000)])];
    const poor = await open({}, { accountBytes: 50_000 });
    expect(await refusalOf(await sendEntries(poor, large), 'QuotaExceeded')).toMatch(
      /exceed the storage quota.*: acme has /,
    );
    const strict = await open({}, { blobBytes: 50_000 });
    expect(await refusalOf(await sendEntries(strict, large), 'PayloadTooLarge')).toMatch(/make smaller layers/);
    expect(await sendEntries(poor, small)).toMatchObject({ tag: 'v1' });
  });
});

test('what is pushed and what comes in archives counts together, at once', async () => {
  const limits = { accountBytes: 300_000 };
  registry = owned.use(await openTestRegistry({ limits }));
  const url = await open({}, limits, registry.quota);
  // As nothing is stored yet, which is measured by this and not again for a while.
  await refusalOf(await sendEntries(url, savedOf([randomBytes(400_000)])), 'QuotaExceeded');
  await pushBlob(registry, 'acme/other', randomBytes(200_000));
  const refused = await refusalOf(await sendEntries(url, savedOf([randomBytes(150_000)])), 'QuotaExceeded');
  expect(refused).toMatch(/: acme has 19\d\.\d KiB of /);
  expect(await sendEntries(url, savedOf([randomBytes(50_000)]))).toMatchObject({ tag: 'v1' });
  const bytes = randomBytes(60_000);
  const push = { method: 'POST', body: bytes };
  expect((await registry.as(`/v2/acme/x/blobs/uploads/?digest=${sha256(bytes)}`, push)).code).toBe('DENIED');
});

describe('a client that leaves in the middle', () => {
  test.each(['application/x-tar', 'multipart/form-data; boundary=cut'])(
    'as %s: leaves blobs to reuse, and nothing else',
    async (type) => {
      const url = await open();
      const [small, large] = ['a small layer', randomBytes(2 * mebibyte)];
      const { layers, config, manifest } = imageOf([small, large]);
      const tar = await tarOf(layoutOf([...layers, config, manifest], [{ blob: manifest, name: 'v1' }]));
      const request = httpRequest(url, {
        method: 'POST',
        agent: false,
        headers: { 'content-type': type, 'content-length': tar.length + 1000 },
      });
      request.on('error', () => {});
      if (type.startsWith('multipart')) {
        request.write('--cut\r\nContent-Disposition: form-data; name="archive"; filename="x"\r\n\r\n');
      }
      request.write(tar.subarray(0, mebibyte));
      await expect.poll(async () => await registry.blobs.stat(blobOf(small).digest)).toBeDefined();
      await expect.poll(uploadsLeft).toHaveLength(1);
      request.destroy();
      await expect.poll(uploadsLeft).toEqual([]);
      expect(await registry.store.get(services, repository)).toBeUndefined();
      expect(await send(url, tar)).toEqual({ digest: manifest.digest, tag: 'v1' });
    },
  );
});

test('an upload that stands still is ended when the platform stops', async () => {
  const url = await open();
  const tar = await tarOf(savedOf([randomBytes(2 * mebibyte)]));
  const { promise: answered, resolve } = Promise.withResolvers<number | undefined>();
  const headers = { 'content-type': 'application/x-tar', 'content-length': tar.length };
  const request = httpRequest(url, { method: 'POST', agent: false, headers }, (response) =>
    resolve(response.statusCode),
  );
  request.on('error', () => {});
  request.write(tar.subarray(0, mebibyte));
  await expect.poll(uploadsLeft).toHaveLength(1);
  closing.abort();
  expect(await answered).toBe(200);
  expect(await uploadsLeft()).toEqual([]);
  request.destroy();
});

test.each(['application/x-tar', 'multipart/form-data; boundary=slow'])(
  'an upload that trickles is cut after some minutes: %s',
  async (type) => {
    const hands = new ManualClock(new Date());
    clock = hands;
    const url = await open();
    const tar = await tarOf(savedOf([randomBytes(2 * mebibyte)]));
    const { promise: answered, resolve } = Promise.withResolvers<string>();
    const request = httpRequest(url, { method: 'POST', agent: false, headers: { 'content-type': type } }, (response) =>
      response.setEncoding('utf8').once('data', resolve),
    );
    request.on('error', () => {});
    if (type.startsWith('multipart')) {
      request.write('--slow\r\nContent-Disposition: form-data; name="archive"; filename="x"\r\n\r\n');
    }
    request.write(tar.subarray(0, mebibyte));
    const receivedBytes = async () => {
      const [uploadId = ''] = await uploadsLeft();
      return uploadId === '' ? 0 : ((await registry.blobs.statUpload(uploadId))?.sizeBytes ?? 0);
    };
    await expect.poll(receivedBytes).toBeGreaterThan(mebibyte / 2);
    let answer: string | undefined;
    void answered.then((text) => (answer = text));
    // Minutes count only while the client is waited for, which is a moment from now.
    const aMinuteLater = async () => {
      await hands.advance(60_000);
      request.write('drop');
      return answer;
    };
    await expect.poll(aMinuteLater, { timeout: 20_000 }).toBeDefined();
    expect(JSON.parse(answer ?? '')).toMatchObject({
      code: 'BadRequest',
      message: expect.stringMatching(/Too little/),
    });
    expect(await uploadsLeft()).toEqual([]);
    request.destroy();
  },
);
