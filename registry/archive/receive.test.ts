import { randomBytes } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlobsError } from '../../core/blobs/blobs.ts';
import {
  blobOf,
  configOf,
  imageOf,
  indexOf,
  layoutOf,
  ociIndexType,
  savedOf,
  tarOf,
} from '../../test/kit/registry/archives.ts';
import type { TestEntry } from '../../test/kit/registry/archives.ts';
import { openArchiveFixture, errorOf, repository, send, sendEntries } from '../testing/archive-fixture.ts';
import type { ArchiveFixture } from '../testing/archive-fixture.ts';

let fixture: ArchiveFixture;
beforeEach(async () => void (fixture = await openArchiveFixture()));
afterEach(async () => await fixture[Symbol.asyncDispose]());

describe('accepts', () => {
  test('an archive of docker save in any order, always with the same digest, and with a link to a duplicate layer', async () => {
    const url = await fixture.open();
    const entries = savedOf(['first', 'second', 'first']);
    const answer = await sendEntries(url, entries);
    expect(answer).toEqual({ digest: expect.stringMatching(/^sha256:/), tag: 'v1' });
    expect(await sendEntries(url, entries.toReversed())).toEqual(answer);
    const { manifest } = imageOf(['first', 'second', 'first']);
    const pulled = await fixture.registry.as(`/v2/${repository}/manifests/v1`);
    expect([pulled.body.toString(), answer.digest]).toEqual([manifest.bytes.toString(), manifest.digest]);
    expect((await fixture.registry.as(`/v2/${repository}/blobs/${blobOf('second').digest}`)).body.toString()).toBe(
      'second',
    );
    expect(await fixture.uploadsLeft()).toEqual([]);
  });

  test('plain, gzip and zstd, also of several members or frames, in a form or as the body', async () => {
    const url = await fixture.open();
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
    expect(await fixture.tags()).toEqual(['frames', 'gzip', 'members', 'raw', 'v1', 'zstd']);
  });

  test('compressed layers as they are, with the matching media type', async () => {
    const url = await fixture.open();
    const layer = blobOf('a layer');
    const gzipped = gzipSync(layer.bytes);
    const config = configOf([layer]);
    const answer = await sendEntries(url, [
      { name: 'config', content: config.bytes },
      { name: 'layer.tar.gz', content: gzipped },
      { name: 'manifest.json', content: JSON.stringify([{ Config: 'config', Layers: ['./layer.tar.gz'] }]) },
    ]);
    expect(answer).toMatchObject({ tag: 'latest' });
    const { body } = await fixture.registry.as(`/v2/${repository}/manifests/latest`);
    expect((JSON.parse(body.toString()) as { layers: unknown }).layers).toEqual([
      {
        mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
        digest: blobOf(gzipped).digest,
        size: gzipped.length,
      },
    ]);
  });

  test('an OCI layout with a nested index, byte for byte, with all its platforms', async () => {
    const url = await fixture.open();
    const platforms = [imageOf(['amd64']), imageOf(['arm64'], { architecture: 'arm64' })];
    const inner = indexOf(platforms.map(({ manifest }) => manifest));
    const outer = indexOf([inner], { mediaType: ociIndexType });
    const blobs = [...platforms.flatMap(({ layers, config, manifest }) => [...layers, config, manifest]), inner, outer];
    const layout = layoutOf(blobs, [{ blob: outer, mediaType: ociIndexType, name: 'registry.test:5000/x/app:multi' }]);
    expect(await sendEntries(url, layout)).toEqual({ digest: outer.digest, tag: 'multi' });
    for (const { digest, bytes } of [outer, inner, ...platforms.map(({ manifest }) => manifest)]) {
      expect((await fixture.registry.as(`/v2/${repository}/manifests/${digest}`)).body.toString()).toBe(
        bytes.toString(),
      );
    }
    const image = platforms[1]?.manifest.digest ?? '';
    expect(await sendEntries(url, layout, { image, tag: 'arm' })).toEqual({ digest: image, tag: 'arm' });
  });

  test('all tags of an image in the archive, unless the client sends one', async () => {
    const url = await fixture.open();
    await sendEntries(url, savedOf(['x'], { tags: ['localhost:5000/a/b:one', 'c:two'] }));
    expect(await fixture.tags()).toEqual(['one', 'two']);
    expect(await sendEntries(url, savedOf(['x'], { tags: ['a:one'] }), { tag: 'mine' })).toMatchObject({ tag: 'mine' });
    expect(await sendEntries(url, savedOf(['x'], { tags: [] }))).toMatchObject({ tag: 'latest' });
    expect(await fixture.tags()).toEqual(['latest', 'mine', 'one', 'two']);
  });

  test('one of several images, by name, tag or digest', async () => {
    const url = await fixture.open();
    const [first, second] = [imageOf(['first']), imageOf(['second'])];
    const blobs = [first, second].flatMap(({ layers, config, manifest }) => [...layers, config, manifest]);
    const layout = layoutOf(blobs, [
      { blob: first.manifest, name: 'docker.io/x/app:v1' },
      { blob: second.manifest, name: 'docker.io/x/app:v2' },
    ]);
    expect(await errorOf(fixture, await sendEntries(url, layout))).toMatch(/holds 2 images.*x\/app:v1.*x\/app:v2/);
    expect(await errorOf(fixture, await sendEntries(url, layout, { image: 'v3' }))).toMatch(
      /no image "v3", but docker/,
    );
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

  test('archives without content that the repository has, and does not store content again', async () => {
    const url = await fixture.open();
    const { layers, config, manifest } = imageOf(['a layer']);
    const first = await sendEntries(url, layoutOf([...layers, config, manifest], [{ blob: manifest }]));
    fixture.fault = new BlobsError('no-space', 'No space');
    expect(await sendEntries(url, layoutOf([config, manifest], [{ blob: manifest }]))).toEqual(first);
  });
});
