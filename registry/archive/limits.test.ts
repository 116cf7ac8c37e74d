/** Archives that exceed a limit, a quota or the free space. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { constants, createZstdCompress, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Yielder } from '../../core/async/yielder.ts';
import { BlobsError } from '../../core/blobs/blobs.ts';
import { blobOf, imageOf, indexOf, layoutOf, ociIndexType, savedOf, tarOf } from '../../test/kit/registry/archives.ts';
import type { TestEntry } from '../../test/kit/registry/archives.ts';
import { pushBlob, sha256 } from '../../test/kit/registry/registry.ts';
import { mebibyte, openArchiveFixture, errorOf, repository, send, sendEntries } from '../testing/archive-fixture.ts';
import type { ArchiveFixture } from '../testing/archive-fixture.ts';
import type { ArchiveLimits } from './limits.ts';

let fixture: ArchiveFixture;
beforeEach(async () => void (fixture = await openArchiveFixture()));
afterEach(async () => await fixture[Symbol.asyncDispose]());

/** Returns the error message for an archive that exceeds one of these limits. */
async function overLimit(archiveLimits: Partial<ArchiveLimits>, entries: readonly TestEntry[]): Promise<string> {
  return await errorOf(fixture, await sendEntries(await fixture.open({ archiveLimits }), entries), 'PayloadTooLarge');
}

describe('rejects', () => {
  test('an archive over the limits', async () => {
    const big = savedOf([randomBytes(300_000), randomBytes(300_000)]);
    expect(await overLimit({ maxBytes: 200_000 }, big)).toMatch(/an entry of more than 200000 bytes/);
    expect(await overLimit({ maxBytes: 500_000 }, big)).toMatch(/unpacks to more than 500000 bytes/);
    expect(await overLimit({ maxEntries: 5 }, big)).toMatch(/more than 5 entries/);
    const zeros = gzipSync(await tarOf(savedOf([Buffer.alloc(mebibyte)])));
    const bomb = await fixture.open({ archiveLimits: { ratioFromBytes: 500_000, maxRatio: 100 } });
    expect(await errorOf(fixture, await send(bomb, zeros), 'PayloadTooLarge')).toMatch(/more than 100 times its size/);
    expect((await send(await fixture.open({ archiveLimits: { ratioFromBytes: 2 * mebibyte } }), zeros)).tag).toBe('v1');
  });

  test('zstd that needs more memory to unpack than levels up to 19', async () => {
    const url = await fixture.open();
    const tar = await tarOf(savedOf([randomBytes(300_000)]));
    // From a stream of unknown size: otherwise the window is no larger than the content.
    const packed = async (windowLog: number) =>
      await buffer(
        Readable.from([tar]).pipe(createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: windowLog } })),
      );
    for (const windowLog of [24, 27]) {
      const answer = await send(url, await packed(windowLog));
      expect(await errorOf(fixture, answer, 'PayloadTooLarge')).toMatch(/without --long and --ultra/);
    }
    expect(await send(url, await packed(23))).toMatchObject({ tag: 'v1' });
  });

  test('documents, manifests and configs that do not fit into memory', async () => {
    const url = await fixture.open();
    const huge = ' '.repeat(4 * mebibyte + 1);
    expect(await errorOf(fixture, await sendEntries(url, [{ name: 'manifest.json', content: huge }]))).toMatch(
      /manifest.json of more than/,
    );
    const manifest = blobOf(huge);
    expect(await errorOf(fixture, await sendEntries(url, layoutOf([manifest], [{ blob: manifest }])))).toMatch(
      /a manifest of more than/,
    );
    const config = blobOf(`{}${huge}`);
    const saved = [
      { name: 'c', content: config.bytes },
      { name: 'manifest.json', content: '[{"Config":"c"}]' },
    ];
    expect(await errorOf(fixture, await sendEntries(url, saved))).toMatch(/a config of more than/);
    const images = Array.from({ length: 4 }, (_, i) => imageOf([`layer ${i}`]));
    const index = indexOf(images.map(({ manifest }) => manifest));
    const blobs = [...images.flatMap(({ layers, config, manifest }) => [...layers, config, manifest]), index];
    const layout = layoutOf(blobs, [{ blob: index, mediaType: ociIndexType }]);
    expect(await overLimit({ maxManifests: 4 }, layout)).toMatch(/more than 4 manifests/);
    const nested = [imageOf(['x']).manifest];
    for (let i = 0; i < 6; i += 1)
      nested.unshift(indexOf(nested.slice(0, 1), i === 0 ? {} : { mediaType: ociIndexType }));
    const deep = layoutOf(
      [...nested, ...imageOf(['x']).layers, imageOf(['x']).config],
      [{ blob: nested[0] ?? blobOf(''), mediaType: ociIndexType }],
    );
    expect(await errorOf(fixture, await sendEntries(url, deep))).toMatch(/nested deeper than 4 levels/);
  });

  test('the export of an image with too many manifests, and yields while it reads them', async () => {
    const images = Array.from({ length: 4 }, (_, i) => imageOf([`layer ${i}`]));
    const index = indexOf(images.map(({ manifest }) => manifest));
    const blobs = [...images.flatMap(({ layers, config, manifest }) => [...layers, config, manifest]), index];
    const layout = layoutOf(blobs, [{ blob: index, mediaType: ociIndexType }]);
    const { digest = '' } = await sendEntries(await fixture.open(), layout);
    const write = async (maxManifests: number) =>
      await fixture.archives({ archiveLimits: { maxManifests } }).write(repository, digest);
    using yields = vi.spyOn(Yielder.prototype, 'yieldIfDue');
    expect(await write(5)).toBeDefined();
    // Each of the four manifests has a config and a layer.
    expect(yields).toHaveBeenCalledTimes(4 + 2 * 4);
    await expect(write(4)).rejects.toMatchObject({ code: 'PayloadTooLarge' });
  });

  test('an archive without enough space or quota', async () => {
    const url = await fixture.open();
    fixture.fault = new BlobsError('no-space', 'No space left on device');
    expect(await errorOf(fixture, await sendEntries(url, savedOf(['x'])), 'InsufficientStorage')).toMatch(
      /no space left/,
    );
    fixture.fault = new BlobsError('unavailable', 'Gone');
    expect(await errorOf(fixture, await sendEntries(url, savedOf(['x'])), 'Unavailable')).toMatch(
      /temporarily unavailable/,
    );
    fixture.fault = undefined;
    const [small, large] = [savedOf(['x']), savedOf([randomBytes(100_000)])];
    const limited = await fixture.open({ limits: { accountBytes: 50_000 } });
    expect(await errorOf(fixture, await sendEntries(limited, large), 'QuotaExceeded')).toMatch(
      /exceed the storage quota.*: acme has /,
    );
    const strict = await fixture.open({ limits: { blobBytes: 50_000 } });
    expect(await errorOf(fixture, await sendEntries(strict, large), 'PayloadTooLarge')).toMatch(/make smaller layers/);
    expect(await sendEntries(limited, small)).toMatchObject({ tag: 'v1' });
  });
});

test('pushes and archives share one quota, without delay', async () => {
  const limits = { accountBytes: 300_000 };
  await using limited = await openArchiveFixture({ limits });
  const url = await limited.open({ limits, quota: limited.registry.quota });
  // Measures the usage while nothing is stored; it is not measured again for a while.
  await errorOf(limited, await sendEntries(url, savedOf([randomBytes(400_000)])), 'QuotaExceeded');
  await pushBlob(limited.registry, 'acme/other', randomBytes(200_000));
  const rejected = await errorOf(limited, await sendEntries(url, savedOf([randomBytes(150_000)])), 'QuotaExceeded');
  expect(rejected).toMatch(/: acme has 19\d\.\d KiB of /);
  expect(await sendEntries(url, savedOf([randomBytes(50_000)]))).toMatchObject({ tag: 'v1' });
  const bytes = randomBytes(60_000);
  const push = { method: 'POST', body: bytes };
  expect((await limited.registry.as(`/v2/acme/x/blobs/uploads/?digest=${sha256(bytes)}`, push)).code).toBe('DENIED');
});
