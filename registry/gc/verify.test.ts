import { randomBytes } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/manual-clock.ts';
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

/** Writes other bytes where a blob is, as a disk may. */
async function damage(registry: TestRegistry, digest: string, bytes: string): Promise<void> {
  const { folder = '' } = registry;
  const files = await readdir(folder, { recursive: true });
  const file = files.find((path) => path.endsWith(digest.replace('sha256:', '')));
  await writeFile(join(folder, file ?? ''), bytes);
}

test('what is whole has no problem, and everything is counted', async () => {
  await using registry = await openTestRegistry();
  await pushImage(registry, { repository, reference: 'v1' });
  await pushImage(registry, { repository: 'acme/paint', reference: 'v1' });
  const { problems, summary } = await verify(registry);
  expect(problems).toEqual([]);
  expect(summary).toMatchObject({ blobs: 2, manifests: 2, tags: 2, repositories: 2, problems: 0, repair: false });
});

test('the bytes of large blobs are counted, each of which is read into memory of its own', async () => {
  await using registry = await openTestRegistry();
  const bytes = randomBytes(3_000_000);
  await pushBlob(registry, repository, bytes);
  const { summary } = await verify(registry);
  expect(summary).toMatchObject({ blobs: 1, bytes: bytes.length });
});

test('bytes of another digest are found, of the same size too; repaired, the next push stores them anew', async () => {
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

test('a push mends bytes that were cut short, without any repair', async () => {
  await using registry = await openTestRegistry();
  await pushImage(registry, { repository, reference: 'v1' });
  await damage(registry, sha256('a layer'), 'a la');
  await pushBlob(registry, repository, 'a layer');
  expect((await verify(registry)).kinds).toEqual([]);
});

test('documents that point to nothing are found, and taken away', async () => {
  const clock = new ManualClock(new Date());
  // Collected would be found, too: not here.
  await using registry = await openTestRegistry({ clock, gc: { everyMs: 1e12 } });
  const { digest } = await pushImage(registry, { repository, reference: 'v1' });
  await pushImage(registry, { repository, reference: 'kept' }, { labels: { other: 'image' } });
  const lost = await pushBlob(registry, repository, 'lost');
  await registry.store.delete(manifests, contentId(repository, digest));
  await registry.blobs.delete(lost.digest);
  // What was linked just now may be a push that is under way.
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

test('a damaged manifest goes with its names, and collection goes on', async () => {
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

test('a link with another size than its bytes is corrected', async () => {
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

test('what was deleted by its digest and is still needed is missing, until it is pushed again', async () => {
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

  // Pushed again, and then its bytes are lost.
  await pushIndex(registry);
  expect((await verify(registry)).kinds).toEqual([]);
  await registry.blobs.delete(layer);
  expect((await verify(registry)).kinds).toEqual(['content-missing']);
});
