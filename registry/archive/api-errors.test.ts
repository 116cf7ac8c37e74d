/** Uploads that are not archives, incomplete archives, and archives whose content does not match its description. */
import { randomBytes } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  blobEntry,
  blobOf,
  imageOf,
  indexOf,
  layoutOf,
  ociIndexType,
  savedOf,
  tarOf,
} from '../../test/kit/registry/archives.ts';
import type { TestEntry } from '../../test/kit/registry/archives.ts';
import { openArchiveFixture, errorOf, send, sendEntries } from '../testing/archive-fixture.ts';
import type { Answer, ArchiveFixture } from '../testing/archive-fixture.ts';

let fixture: ArchiveFixture;
beforeEach(async () => void (fixture = await openArchiveFixture()));
afterEach(async () => await fixture[Symbol.asyncDispose]());

describe('rejects', () => {
  test('bodies that are no archive, or an incomplete one', async () => {
    const url = await fixture.open();
    const tar = await tarOf(savedOf([randomBytes(20_000)]));
    expect(await errorOf(fixture, await send(url, Buffer.from('hello '.repeat(1000))))).toMatch(/not a complete tar/);
    expect(await errorOf(fixture, await send(url, await tarOf([])))).toMatch(/has no entries/);
    expect(await errorOf(fixture, await send(url, await tarOf([{ name: 'README', content: 'x' }])))).toMatch(
      /neither of `docker save`/,
    );
    expect(await errorOf(fixture, await send(url, gzipSync(gzipSync(tar))))).toMatch(/compressed twice/);
    expect(await errorOf(fixture, await send(url, Buffer.concat([tar, randomBytes(1024)])))).toMatch(
      /not a complete tar/,
    );
    // A zero after gzip counts as padding.
    const trailing = Buffer.from([1, ...randomBytes(63)]);
    expect(await errorOf(fixture, await send(url, Buffer.concat([gzipSync(tar), trailing])))).toMatch(
      /damaged or cut off/,
    );
    expect(await errorOf(fixture, await send(url, Buffer.concat([zstdCompressSync(tar), trailing])))).toMatch(
      /damaged or cut off/,
    );
    const damaged = Buffer.from(zstdCompressSync(tar));
    damaged[5000]! ^= 0xff;
    expect((await send(url, damaged)).code).toBe('BadRequest');
  });

  test('an archive that is cut off at any point', async () => {
    const url = await fixture.open();
    const tar = await tarOf(savedOf([randomBytes(2_000)], { tags: ['x:cut'] }));
    // The last three blocks are an unneeded entry, and the end of the tar.
    const needed = tar.indexOf('repositories');
    for (const bytes of [tar.subarray(0, needed), gzipSync(tar), zstdCompressSync(tar)]) {
      for (const part of [0.05, 0.3, 0.55, 0.8, 0.97]) {
        const cut = bytes.subarray(0, Math.floor(bytes.length * part));
        expect(await errorOf(fixture, await send(url, cut))).toMatch(/archive/);
      }
    }
  });

  test('content that does not match its digest, size or place', async () => {
    const url = await fixture.open();
    const { layers, config, manifest } = imageOf(['a layer']);
    const [layer = blobOf('')] = layers;
    const layout = (...blobs: TestEntry[]) => [...blobs, ...layoutOf([config, manifest], [{ blob: manifest }])];
    const wrong = { ...blobEntry(layer), content: 'another' };
    expect(await errorOf(fixture, await sendEntries(url, layout(wrong)))).toMatch(
      /is damaged: the content of "blobs\/sha256/,
    );
    expect(await errorOf(fixture, await sendEntries(url, layout()))).toMatch(
      new RegExp(`not in this repository: ${layer.digest}`),
    );
    const wrongSize = blobOf(manifest.bytes.toString().replace(`"size":${layer.size}}]`, `"size":9}]`));
    const sizes = layoutOf([layer, config, wrongSize], [{ blob: wrongSize }]);
    expect(await errorOf(fixture, await sendEntries(url, sizes))).toMatch(/has 7 bytes of .*, but its manifest says 9/);
    const shortIndex = layoutOf([layer, config, manifest], [{ blob: { ...manifest, size: 9 } }]);
    expect(await errorOf(fixture, await sendEntries(url, shortIndex))).toMatch(/but its index.json says 9/);
    const swapped = savedOf(['a layer']).map((entry) =>
      entry.name.endsWith('layer.tar') ? { ...entry, content: 'another' } : entry,
    );
    expect(await errorOf(fixture, await sendEntries(url, swapped))).toMatch(/has the layer .* in place of/);
    const fewer = savedOf(['a layer', 'another']).map((entry) =>
      entry.name === 'manifest.json'
        ? { ...entry, content: String(entry.content).replace(',"layer-1/layer.tar"', '') }
        : entry,
    );
    expect(await errorOf(fixture, await sendEntries(url, fewer))).toMatch(
      /has 1 layers, but the config sha256:\w+ lists 2/,
    );
    const index = indexOf([manifest, imageOf(['absent']).manifest]);
    const sparse = layoutOf([layer, config, manifest, index], [{ blob: index, mediaType: ociIndexType }]);
    expect(await errorOf(fixture, await sendEntries(url, sparse))).toMatch(/which its index names: save all platforms/);
  });

  test('invalid documents', async () => {
    const url = await fixture.open();
    const saved = (content: string) => [{ name: 'manifest.json', content }];
    for (const content of ['', '[', '{}', '[{}]', '[{"Config":1}]', '"x"', '\u0000', '['.repeat(100_000)]) {
      expect(await errorOf(fixture, await sendEntries(url, saved(content)))).toMatch(
        /manifest.json that cannot be understood/,
      );
    }
    expect(await errorOf(fixture, await sendEntries(url, saved('[]')))).toMatch(/holds no image/);
    expect(await errorOf(fixture, await sendEntries(url, saved('[{"Config":"x"}]')))).toMatch(
      /refers to "x", which it does not contain/,
    );
    const notConfig = [
      { name: 'x', content: '[' },
      { name: 'manifest.json', content: '[{"Config":"x"}]' },
    ];
    expect(await errorOf(fixture, await sendEntries(url, notConfig))).toMatch(/config that cannot be understood/);
    const artifact = blobOf({
      schemaVersion: 2,
      config: { mediaType: 'application/x', digest: blobOf('{}').digest, size: 2 },
      layers: [],
    });
    const layout = layoutOf([blobOf('{}'), artifact], [{ blob: artifact }]);
    expect(await errorOf(fixture, await sendEntries(url, layout))).toMatch(/holds no image of a container/);
  });

  test('invalid forms', async () => {
    const url = await fixture.open();
    const tar = new Blob([Buffer.from(await tarOf(savedOf(['x'])))]);
    const post = async (fields: [string, Blob | string][]) => {
      const body = new FormData();
      for (const [name, value] of fields) {
        if (typeof value === 'string') body.append(name, value);
        else body.append(name, value, 'image.tar');
      }
      return (await (await fetch(url, { method: 'POST', body })).json()) as Answer;
    };
    expect(await errorOf(fixture, await post([['file', tar]]))).toMatch(
      /one file, in the field "archive", not in "file"/,
    );
    expect(await errorOf(fixture, await post([['tag', 'v1']]))).toMatch(/no file in the field "archive"/);
    expect(await errorOf(fixture, await post([['archive', 'text']]))).toMatch(/no file in the field "archive"/);
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
    expect(await fixture.uploadsLeft()).toEqual([]);
  });
});
