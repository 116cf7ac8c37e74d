/** When the bytes of a blob are removed, and when they stay. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { collect } from '../../test/kit/registry/garbage-collection.ts';
import { pushBlob, sha256 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';
import { blobLinks, contentId, tombstones } from '../content/documents.ts';
import { blobCount, hourMs, openGcFixture, repository, status } from '../testing/gc-fixture.ts';

test('bytes are removed when no repository links to them, and not before their wait has ended', async () => {
  const waitMs = 600_000;
  await using opened = await openGcFixture({ removalWaitMs: waitMs });
  const { registry, clock } = opened;
  const { digest } = await pushBlob(registry, repository, 'shared');
  await pushBlob(registry, 'acme/paint', 'shared');
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'DELETE' });
  expect((await collect(registry)).summary.marked.blobs).toBe(0);
  await registry.as(`/v2/acme/paint/blobs/${digest}`, { method: 'DELETE' });
  expect((await collect(registry)).summary).toMatchObject({ marked: { blobs: 1 }, removed: { blobs: 0 } });
  // The collector runs by itself when the wait has ended.
  const isGone = async () => {
    await clock.advance(waitMs);
    return await blobCount(registry);
  };
  await expect.poll(isGone).toBe(0);
});

test('a push of marked bytes keeps them', async () => {
  await using opened = await openGcFixture({ removalWaitMs: 600_000 });
  const { registry, clock } = opened;
  const { digest } = await pushBlob(registry, repository, 'marked');
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'DELETE' });
  await collect(registry);
  expect(await registry.store.get(tombstones, digest)).toBeDefined();
  await pushBlob(registry, 'acme/paint', 'marked');
  expect(await registry.store.get(tombstones, digest)).toBeUndefined();
  await clock.advance(hourMs);
  await collectAfterSchedule(registry);
  expect((await registry.as(`/v2/acme/paint/blobs/${digest}`)).status).toBe(200);
});

test('a link that was created after the deletion began is found, and the bytes stay', async () => {
  await using opened = await openGcFixture();
  const { registry } = opened;
  const { digest } = await pushBlob(registry, repository, 'linked late');
  await registry.store.insert(tombstones, { id: digest, state: 'deleting', at: new Date() });
  await collect(registry);
  expect(await registry.store.get(tombstones, digest)).toBeUndefined();
  expect(await status(registry, `blobs/${digest}`)).toBe(200);
});

/** A deleted blob whose removal a crash has interrupted. @returns its digest. */
async function halfRemoved(registry: TestRegistry): Promise<string> {
  const { digest } = await pushBlob(registry, repository, 'half removed');
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'DELETE' });
  await registry.store.insert(tombstones, { id: digest, state: 'deleting', at: new Date() });
  return digest;
}

test('a removal that a crash interrupted is finished at the next start', async () => {
  await using opened = await openGcFixture();
  const { registry } = opened;
  const digest = await halfRemoved(registry);
  await registry.restart();
  await expect.poll(async () => await registry.store.get(tombstones, digest)).toBeUndefined();
  expect(await blobCount(registry)).toBe(0);
});

test('a blob that cannot be removed does not keep others from being removed, and stays marked', async () => {
  await using opened = await openGcFixture();
  const { registry } = opened;
  const { digest } = await pushBlob(registry, repository, 'stuck');
  const other = await pushBlob(registry, repository, 'removable');
  for (const each of [digest, other.digest]) {
    await registry.as(`/v2/${repository}/blobs/${each}`, { method: 'DELETE' });
    await registry.store.insert(tombstones, { id: each, state: 'deleting', at: new Date() });
  }
  const folder = registry.folder ?? '';
  const file = (await readdir(folder, { recursive: true })).find((name) => digest.endsWith(basename(name))) ?? '';
  const path = join(folder, file);
  await rm(path);
  await mkdir(path);
  expect((await collect(registry)).summary.removed.blobs).toBe(1);
  expect(await registry.store.get(tombstones, other.digest)).toBeUndefined();
  expect(await registry.store.get(tombstones, digest)).toMatchObject({ state: 'deleting' });
  expect(registry.logLines.join('')).toContain(digest);
  const events = registry.collector.verify({ repair: true }, new AbortController().signal);
  expect((await Array.fromAsync(events)).at(-1)).toMatchObject({ type: 'verified' });
});

test('a repair first finishes a removal that a crash interrupted, so that a push does not wait for its end', async () => {
  await using opened = await openGcFixture();
  const { registry } = opened;
  const digest = await halfRemoved(registry);
  // Content without bytes, so that the repair reports a problem before its end.
  const missing = sha256('missing');
  const link = { id: contentId(repository, missing), repository, digest: missing, sizeBytes: 7, usedAt: new Date() };
  await registry.store.insert(blobLinks, link);
  const events = registry.collector.verify({ repair: true }, new AbortController().signal);
  await events.next();
  expect(await registry.store.get(tombstones, digest)).toBeUndefined();
  await events.return();
});

/** Waits until the scheduled collector has finished. */
async function collectAfterSchedule(registry: TestRegistry): Promise<void> {
  const isDone = async () =>
    await collect(registry).then(
      () => true,
      (error: Error) => error.name !== 'GcBusyError',
    );
  await expect.poll(isDone).toBe(true);
}
