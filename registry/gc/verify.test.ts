import { randomBytes } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { images } from '../../model/image.ts';
import { openTestRegistry, pushBlob, pushImage, putManifest, sha256 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';
import { blobLinks, contentId, manifests, tagId, tags, tombstones } from '../content/documents.ts';
import type { Problem, VerificationSummary } from './events.ts';

const repository = 'acme/draw';

async function verify(registry: TestRegistry, repair = false) {
  const problems: Problem[] = [];
  let summary: VerificationSummary | undefined;
  for await (const event of registry.collector.verify({ repair }, new AbortController().signal)) {
    if (event.type === 'problem') problems.push(event);
    else summary = event;
  }
  return { problems, kinds: problems.map(({ kind }) => kind), summary };
}

/** Overwrites the bytes of a blob, as a faulty disk may. */
async function damage(registry: TestRegistry, digest: string, bytes: string): Promise<void> {
  const { folder = '' } = registry;
  const files = await readdir(folder, { recursive: true });
  const file = files.find((path) => path.endsWith(digest.replace('sha256:', '')));
  await writeFile(join(folder, file ?? ''), bytes);
}

test('intact content has no problem, and everything is counted', async () => {
  await using registry = await openTestRegistry();
  await pushImage(registry, { repository, reference: 'v1' });
  await pushImage(registry, { repository: 'acme/paint', reference: 'v1' });
  const { problems, summary } = await verify(registry);
  expect(problems).toEqual([]);
  expect(summary).toMatchObject({ blobs: 2, manifests: 2, tags: 2, repositories: 2, problems: 0, repair: false });
});

test('the bytes of large blobs, which have more than one chunk, are counted', async () => {
  await using registry = await openTestRegistry();
  const bytes = randomBytes(3_000_000);
  await pushBlob(registry, repository, bytes);
  const { summary } = await verify(registry);
  expect(summary).toMatchObject({ blobs: 1, bytes: bytes.length });
});

test('finds bytes with another digest, also of the same size; after a repair, the next push stores them again', async () => {
  await using registry = await openTestRegistry();
  await pushImage(registry, { repository, reference: 'v1' });
  await damage(registry, sha256('a layer'), 'a hayer');
  const found = await verify(registry);
  expect(found.problems).toMatchObject([{ kind: 'blob-damaged', digest: sha256('a layer'), repaired: false }]);
  expect(found.problems[0]?.message).toContain(repository);
  const repaired = await verify(registry, true);
  expect(repaired.problems).toMatchObject([
    { kind: 'blob-damaged', repaired: true },
    { kind: 'content-missing', digest: sha256('a layer'), repository, repaired: false },
  ]);
  expect(repaired.problems[1]?.message).toContain(`${repository} (v1)`);
  expect(await registry.store.get(tombstones, sha256('a layer'))).toBeUndefined();
  expect((await registry.as(`/v2/${repository}/blobs/${sha256('a layer')}`, { method: 'HEAD' })).status).toBe(404);
  await pushImage(registry, { repository, reference: 'v1' });
  expect((await verify(registry)).kinds).toEqual([]);
});

test('a push replaces truncated bytes without a repair', async () => {
  await using registry = await openTestRegistry();
  await pushImage(registry, { repository, reference: 'v1' });
  await damage(registry, sha256('a layer'), 'a la');
  await pushBlob(registry, repository, 'a layer');
  expect((await verify(registry)).kinds).toEqual([]);
});

test('finds and deletes documents that point to nothing', async () => {
  const clock = new ManualClock(new Date());
  // Without garbage collection, which would delete them.
  await using registry = await openTestRegistry({ clock, gc: { everyMs: 1e12 } });
  const { digest } = await pushImage(registry, { repository, reference: 'v1' });
  await pushImage(registry, { repository, reference: 'kept' }, { labels: { other: 'image' } });
  const lost = await pushBlob(registry, repository, 'lost');
  await registry.store.delete(manifests, contentId(repository, digest));
  await registry.blobs.delete(lost.digest);
  // A recent link may belong to a push in progress.
  expect((await verify(registry)).kinds).toEqual(['tag-without-manifest', 'image-without-manifest']);
  await clock.advance(2 * 24 * 3_600_000);
  const expected = ['link-without-bytes', 'tag-without-manifest', 'image-without-manifest'];
  expect((await verify(registry)).kinds).toEqual(expected);
  const { problems } = await verify(registry, true);
  expect(problems.every(({ repaired }) => repaired)).toBe(true);
  expect((await verify(registry)).kinds).toEqual([]);
  expect(await registry.store.get(tags, tagId(repository, 'v1'))).toBeUndefined();
  expect(await registry.store.find(images, { index: 'byDigest', equals: { repository, digest } })).toEqual([]);
  expect((await registry.as(`/v2/${repository}/manifests/kept`)).status).toBe(200);
});

test('deletes a damaged manifest with its tags and images', async () => {
  await using registry = await openTestRegistry();
  const { digest } = await pushImage(registry, { repository, reference: 'v1' });
  const id = contentId(repository, digest);
  await registry.store.update(manifests, id, (manifest) => ({
    ...manifest,
    bytes: Buffer.from('{"schemaVersion":2}'),
  }));
  expect((await verify(registry)).kinds).toEqual(['manifest-damaged']);
  expect((await verify(registry, true)).problems).toMatchObject([{ kind: 'manifest-damaged', repaired: true }]);
  expect((await verify(registry)).kinds).toEqual([]);
  expect((await registry.as(`/v2/${repository}/manifests/v1`)).status).toBe(404);
});

test('keeps an intact manifest that its parser does not accept', async () => {
  await using registry = await openTestRegistry();
  const { digest } = await pushImage(registry, { repository, reference: 'v1' });
  const id = contentId(repository, digest);
  await registry.store.update(manifests, id, (manifest) => ({
    ...manifest,
    mediaType: 'application/of-another-version',
  }));
  expect((await verify(registry, true)).problems).toMatchObject([{ kind: 'manifest-unreadable', repaired: false }]);
  expect((await registry.as(`/v2/${repository}/manifests/v1`)).status).toBe(200);
});

test('corrects the size in a link', async () => {
  await using registry = await openTestRegistry();
  const blob = await pushBlob(registry, repository, 'seven b');
  const id = contentId(repository, blob.digest);
  await registry.store.update(blobLinks, id, (link) => ({ ...link, sizeBytes: 3 }));
  expect((await verify(registry)).kinds).toEqual(['link-size']);
  expect((await verify(registry, true)).problems).toMatchObject([{ repaired: true }]);
  expect((await registry.store.get(blobLinks, id))?.sizeBytes).toBe(7);
});

const indexType = 'application/vnd.oci.image.index.v1+json';
const imageType = 'application/vnd.oci.image.manifest.v1+json';

/** A tagged index of one image. */
async function pushIndex(registry: TestRegistry): Promise<string> {
  const { digest } = await pushImage(registry, { repository, reference: 'child' });
  const { body } = await registry.as(`/v2/${repository}/manifests/${digest}`);
  const manifests = [{ mediaType: imageType, digest, size: body.length }];
  await putManifest(registry, { repository, reference: 'many' }, { schemaVersion: 2, mediaType: indexType, manifests });
  return digest;
}

test('reports content that was deleted by digest and is still needed, until it is pushed again', async () => {
  await using registry = await openTestRegistry();
  const child = await pushIndex(registry);
  const layer = sha256('a layer');
  const remove = async (path: string) => (await registry.as(`/v2/${repository}/${path}`, { method: 'DELETE' })).status;
  expect(await remove(`blobs/${layer}`)).toBe(202);
  const found = await verify(registry);
  expect(found.problems).toMatchObject([{ kind: 'content-missing', digest: layer, repository, repaired: false }]);
  expect(found.problems[0]?.message).toContain(`${repository} (child) needs it`);
  expect(await remove(`manifests/${child}`)).toBe(202);
  expect((await verify(registry)).problems).toMatchObject([{ kind: 'content-missing', digest: child }]);

  // Pushed again; then its bytes are lost.
  await pushIndex(registry);
  expect((await verify(registry)).kinds).toEqual([]);
  await registry.blobs.delete(layer);
  expect((await verify(registry)).kinds).toEqual(['content-missing']);
});
