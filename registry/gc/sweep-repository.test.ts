/** What garbage collection keeps and deletes, on real drivers with a manual clock. */
import { expect, test } from 'vitest';
import { collect } from '../../test/kit/registry/garbage-collection.ts';
import { backends, newBackend } from '../../model/backend.ts';
import { findImage } from '../../model/image.ts';
import { services, withDeletion, withImageTag } from '../../model/service.ts';
import { pushBlob, pushImage, putManifest, sha256 } from '../../test/kit/registry/registry.ts';
import { blobLinks, leaderLeases, contentId, tombstones } from '../content/documents.ts';
import {
  blobCount,
  has,
  hourMs,
  imageType,
  layerType,
  leaseMs,
  openGcFixture,
  push,
  repository,
  status,
} from '../testing/gc-fixture.ts';

const indexType = 'application/vnd.oci.image.index.v1+json';

test('the manifest of a tag stays; an earlier one is deleted with its bytes when its lease has expired', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  const old = await push(registry, 'latest', 'old');
  const current = await push(registry, 'latest', 'current');
  await clock.advance(leaseMs - hourMs);
  await collect(registry);
  expect([await has(registry, old), await has(registry, current)]).toEqual([true, true]);
  await clock.advance(2 * hourMs);
  const { events } = await collect(registry);
  expect([await has(registry, old), await has(registry, current)]).toEqual([false, true]);
  expect(await findImage(registry.store, repository, old.digest)).toBeUndefined();
  expect((await findImage(registry.store, repository, 'latest'))?.digest).toBe(current.digest);
  expect(events).toMatchObject([
    { type: 'repository', repository, manifests: 1, blobs: 2 },
    { type: 'collected', dry_run: false, manifests: 1, links: 2, removed: { blobs: 2 } },
  ]);
  expect(await blobCount(registry)).toBe(2);
});

test('a dry run reports what would be deleted, and changes nothing', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  await push(registry, 'latest', 'old');
  await push(registry, 'latest', 'current');
  await pushBlob(registry, 'acme/paint', 'layer of old');
  await clock.advance(2 * leaseMs);
  const leaseBefore = await registry.store.get(leaderLeases, 'collector');
  const dry = await collect(registry, true);
  expect(await blobCount(registry)).toBe(4);
  expect(await registry.store.find(tombstones, { index: 'byState' })).toEqual([]);
  expect(await registry.store.get(leaderLeases, 'collector')).toEqual(leaseBefore);
  const real = await collect(registry);
  expect(real.events.filter(({ type }) => type === 'repository')).toEqual(
    dry.events.filter(({ type }) => type === 'repository'),
  );
  expect(dry.summary.removed.blobs).toBe(0);
  expect(dry.summary.marked).toEqual(real.summary.removed);
  expect(real.summary.removed.blobs).toBe(2);
});

test('the configured number of untagged images stay, the last ones pushed', async () => {
  await using opened = await openGcFixture({ keptUntaggedImages: 2 });
  const { registry, clock } = opened;
  const images = [];
  for (const content of ['1', '2', '3', '4']) {
    images.push(await push(registry, 'latest', content));
    await clock.advance(1000);
  }
  await clock.advance(2 * leaseMs);
  await collect(registry);
  const kept = await Promise.all(images.map(async (image) => await has(registry, image)));
  expect(kept).toEqual([false, true, true, true]);
});

test('images that an environment spawns or a backend runs by digest stay', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  const [set, running, ended] = [
    await push(registry, 'x', '1'),
    await push(registry, 'x', '2'),
    await push(registry, 'x', '3'),
  ];
  await push(registry, 'x', '4');
  await registry.store.update(services, repository, (service) => withImageTag(service, 'default', set.digest));
  const about = {
    account: 'acme',
    service: 'draw',
    environment: 'default',
    cluster: 'main',
    limits: {},
    maxIdleSeconds: 1,
    port: 1,
  };
  await registry.store.insert(backends, newBackend({ ...about, id: 'live', imageDigest: running.digest }, clock.now()));
  const dead = newBackend({ ...about, id: 'dead', imageDigest: ended.digest }, clock.now());
  await registry.store.insert(backends, { ...dead, live: false });
  await clock.advance(2 * leaseMs);
  await collect(registry);
  expect(await Promise.all([set, running, ended].map((image) => has(registry, image)))).toEqual([true, true, false]);
});

test('an index keeps its children: manifests, and blobs as in build caches', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  const child = await push(registry, '', 'child');
  const cached = await pushBlob(registry, repository, 'a cached layer');
  await putManifest(
    registry,
    { repository, reference: 'all' },
    {
      schemaVersion: 2,
      mediaType: indexType,
      manifests: [
        { mediaType: imageType, digest: child.digest, size: child.size },
        { mediaType: layerType, ...cached },
      ],
    },
  );
  await clock.advance(2 * leaseMs);
  await collect(registry);
  expect(await has(registry, child)).toBe(true);
  expect(await status(registry, `blobs/${cached.digest}`)).toBe(200);
});

test('referrers live as long as their subject', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  const image = await push(registry, 'signed', 'signed');
  const extra = {
    subject: { mediaType: imageType, digest: image.digest, size: image.size },
    annotations: { by: 'me' },
  };
  const signature = await pushImage(registry, { repository, reference: 'tmp' }, { extra });
  await registry.as(`/v2/${repository}/manifests/tmp`, { method: 'DELETE' });
  await clock.advance(2 * leaseMs);
  await collect(registry);
  expect(await status(registry, `manifests/${signature.digest}`)).toBe(200);
  await registry.as(`/v2/${repository}/manifests/signed`, { method: 'DELETE' });
  await collect(registry);
  expect(await status(registry, `manifests/${signature.digest}`)).toBe(404);
  expect(await has(registry, image)).toBe(false);
  expect(await blobCount(registry)).toBe(0);
});

test('HEAD, mount and push renew the lease of a blob; HEAD by digest renews the lease of a manifest', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  const blob = await pushBlob(registry, repository, 'asked for');
  const untagged = await push(registry, '', 'untagged');
  await pushBlob(registry, 'acme/paint', 'mounted');
  const mount = `/v2/${repository}/blobs/uploads/?mount=${sha256('mounted')}&from=acme/paint`;
  for (let round = 0; round < 4; round += 1) {
    await clock.advance(leaseMs - 2 * hourMs);
    await registry.as(`/v2/${repository}/blobs/${blob.digest}`, { method: 'HEAD' });
    await registry.as(`/v2/${repository}/manifests/${untagged.digest}`, { method: 'HEAD' });
    await registry.as(`/v2/acme/paint/blobs/${sha256('mounted')}`, { method: 'HEAD' });
    expect((await registry.as(mount, { method: 'POST' })).status).toBe(201);
    await collect(registry);
    expect(await status(registry, `blobs/${blob.digest}`)).toBe(200);
    expect(await status(registry, `blobs/${sha256('mounted')}`)).toBe(200);
    expect(await has(registry, untagged)).toBe(true);
  }
  await clock.advance(leaseMs + hourMs);
  await collect(registry);
  expect(await blobCount(registry)).toBe(0);
});

test('a lease is written at most once an hour, and still lasts', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  const { digest } = await pushBlob(registry, repository, 'asked for');
  const usedAt = async () => (await registry.store.get(blobLinks, contentId(repository, digest)))?.usedAt;
  const before = await usedAt();
  await clock.advance(hourMs - 1);
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'HEAD' });
  expect(await usedAt()).toEqual(before);
  await clock.advance(2);
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'HEAD' });
  expect(await usedAt()).toEqual(clock.now());
});

test.each(['gone', 'marked as deleted'])(
  'the content of a service whose document is %s is deleted',
  async (document) => {
    await using opened = await openGcFixture({ keptUntaggedImages: 20 });
    const { registry, clock } = opened;
    await push(registry, 'v1');
    if (document === 'gone') await registry.store.delete(services, repository);
    else await registry.store.update(services, repository, (service) => withDeletion(service, clock.now()));
    await collect(registry);
    expect(await blobCount(registry)).toBe(2);
    await clock.advance(2 * leaseMs);
    const { summary } = await collect(registry);
    expect(summary).toMatchObject({ manifests: 1, tags: 1, links: 2, removed: { blobs: 2 } });
    expect(await findImage(registry.store, repository, 'v1')).toBeUndefined();
    expect((await collect(registry)).summary.repositories).toBe(0);
  },
);
