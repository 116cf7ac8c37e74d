/** What garbage collection keeps and takes, on real drivers, with the clock in hand. */
import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/manual-clock.ts';
import { backends, newBackend } from '../../model/backend.ts';
import { findImage } from '../../model/image.ts';
import { services, withImageTag } from '../../model/service.ts';
import { openTestRegistry, pushBlob, pushImage, putManifest, sha256 } from '../../test/kit/registry.ts';
import type { TestRegistry, TestRegistryOptions } from '../../test/kit/registry.ts';
import { blobLinks, collectorTurns, contentId, manifests, tombstones } from '../documents.ts';
import type { CollectionEvent, CollectionSummary } from './events.ts';

const hourMs = 3_600_000;
const leaseMs = 24 * hourMs;
const repository = 'acme/draw';
const imageType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';
const layerType = 'application/vnd.oci.image.layer.v1.tar';

interface Opened extends AsyncDisposable {
  readonly registry: TestRegistry;
  readonly clock: ManualClock;
}

async function open(options: TestRegistryOptions['collection'] = {}, more: TestRegistryOptions = {}): Promise<Opened> {
  const clock = new ManualClock(new Date());
  // Far apart, so that nothing is collected but by these tests.
  const collection = { everyMs: 1000 * leaseMs, removalWaitMs: 0, keptUntaggedImages: 0, ...options };
  const registry = await openTestRegistry({ clock, collection, ...more });
  return { registry, clock, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() };
}

async function collect(registry: TestRegistry, isDry = false) {
  const events: CollectionEvent[] = [];
  for await (const event of registry.collector.collect({ isDry }, new AbortController().signal)) events.push(event);
  return { events, summary: events.at(-1) as CollectionSummary };
}

/** Once the collector is done that has come by itself. */
async function collectInTurn(registry: TestRegistry): Promise<void> {
  const isDone = async () =>
    await collect(registry).then(
      () => true,
      (error: Error) => error.name !== 'CollectorBusyError',
    );
  await expect.poll(isDone).toBe(true);
}

/** An image with a layer of its own. */
async function push(registry: TestRegistry, reference: string, content = reference) {
  const layer = await pushBlob(registry, repository, `layer of ${content}`);
  const config = await pushBlob(registry, repository, JSON.stringify({ os: 'linux', content }));
  const manifest = {
    schemaVersion: 2,
    mediaType: imageType,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers: [{ mediaType: layerType, ...layer }],
  };
  const digest = sha256(JSON.stringify(manifest));
  const answer = await putManifest(registry, { repository, reference: reference || digest }, manifest);
  expect(answer.status).toBe(201);
  return { digest, layer: layer.digest, size: JSON.stringify(manifest).length };
}

async function status(registry: TestRegistry, path: string): Promise<number> {
  return (await registry.as(`/v2/${repository}/${path}`)).status;
}

async function has(registry: TestRegistry, image: { digest: string; layer: string }): Promise<boolean> {
  const found = await status(registry, `manifests/${image.digest}`);
  const layer = await status(registry, `blobs/${image.layer}`);
  expect(layer).toBe(found);
  return found === 200;
}

async function blobCount({ blobs }: TestRegistry): Promise<number> {
  let count = 0;
  for await (const _digest of blobs.list()) count += 1;
  return count;
}

test('what a tag points to stays, what it pointed to goes when its lease is over, bytes and all', async () => {
  await using opened = await open();
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

test('a dry run says what would go, and how much, and changes nothing', async () => {
  await using opened = await open();
  const { registry, clock } = opened;
  await push(registry, 'latest', 'old');
  await push(registry, 'latest', 'current');
  await pushBlob(registry, 'acme/paint', 'layer of old');
  await clock.advance(2 * leaseMs);
  const turnBefore = await registry.store.get(collectorTurns, 'collector');
  const dry = await collect(registry, true);
  expect(await blobCount(registry)).toBe(4);
  expect(await registry.store.find(tombstones, { index: 'byState' })).toEqual([]);
  expect(await registry.store.get(collectorTurns, 'collector')).toEqual(turnBefore);
  const real = await collect(registry);
  expect(real.events.filter(({ type }) => type === 'repository')).toEqual(
    dry.events.filter(({ type }) => type === 'repository'),
  );
  expect(dry.summary.removed.blobs).toBe(0);
  expect(dry.summary.condemned).toEqual(real.summary.removed);
  expect(real.summary.removed.blobs).toBe(2);
});

test('the untagged images pushed last stay, as many as are set', async () => {
  await using opened = await open({ keptUntaggedImages: 2 });
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

test('what an environment spawns and what a backend runs stays, by digest', async () => {
  await using opened = await open();
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

test('an index keeps children that are manifests and children that are blobs, as build caches have them', async () => {
  await using opened = await open();
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
  await using opened = await open();
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

test('HEAD, mount and push renew the lease of a blob, HEAD by digest that of a manifest', async () => {
  await using opened = await open();
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

test('within an hour a lease is not written again, and still lasts', async () => {
  await using opened = await open();
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

test('what a service that is gone has left goes, and a service made anew begins empty', async () => {
  await using opened = await open({ keptUntaggedImages: 20 });
  const { registry, clock } = opened;
  await push(registry, 'v1');
  await registry.store.delete(services, repository);
  await collect(registry);
  expect(await blobCount(registry)).toBe(2);
  await clock.advance(2 * leaseMs);
  const { summary } = await collect(registry);
  expect(summary).toMatchObject({ manifests: 1, tags: 1, links: 2, removed: { blobs: 2 } });
  expect(await findImage(registry.store, repository, 'v1')).toBeUndefined();
  expect((await collect(registry)).summary.repositories).toBe(0);
});

test('bytes go when no repository has them, and not before the wait is over', async () => {
  const waitMs = 600_000;
  await using opened = await open({ removalWaitMs: waitMs });
  const { registry, clock } = opened;
  const { digest } = await pushBlob(registry, repository, 'shared');
  await pushBlob(registry, 'acme/paint', 'shared');
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'DELETE' });
  expect((await collect(registry)).summary.condemned.blobs).toBe(0);
  await registry.as(`/v2/acme/paint/blobs/${digest}`, { method: 'DELETE' });
  expect((await collect(registry)).summary).toMatchObject({ condemned: { blobs: 1 }, removed: { blobs: 0 } });
  // The collector comes back by itself when the wait is over.
  const isGone = async () => {
    await clock.advance(waitMs);
    return await blobCount(registry);
  };
  await expect.poll(isGone).toBe(0);
});

test('who pushes condemned bytes keeps them', async () => {
  await using opened = await open({ removalWaitMs: 600_000 });
  const { registry, clock } = opened;
  const { digest } = await pushBlob(registry, repository, 'condemned');
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'DELETE' });
  await collect(registry);
  expect(await registry.store.get(tombstones, digest)).toBeDefined();
  await pushBlob(registry, 'acme/paint', 'condemned');
  expect(await registry.store.get(tombstones, digest)).toBeUndefined();
  await clock.advance(hourMs);
  await collectInTurn(registry);
  expect((await registry.as(`/v2/acme/paint/blobs/${digest}`)).status).toBe(200);
});

test('a link that was made when the tombstone was marked already is seen, and the bytes stay', async () => {
  await using opened = await open();
  const { registry } = opened;
  const { digest } = await pushBlob(registry, repository, 'linked late');
  await registry.store.insert(tombstones, { id: digest, state: 'deleting', at: new Date() });
  await collect(registry);
  expect(await registry.store.get(tombstones, digest)).toBeUndefined();
  expect(await status(registry, `blobs/${digest}`)).toBe(200);
});

test('a removal that a crash cut short is finished at the next start', async () => {
  await using opened = await open();
  const { registry } = opened;
  const { digest } = await pushBlob(registry, repository, 'half removed');
  await registry.as(`/v2/${repository}/blobs/${digest}`, { method: 'DELETE' });
  await registry.store.insert(tombstones, { id: digest, state: 'deleting', at: new Date() });
  await registry.restart();
  await expect.poll(async () => await registry.store.get(tombstones, digest)).toBeUndefined();
  expect(await blobCount(registry)).toBe(0);
});

test('a collection that another process does is not done here; one whose process died is, some seconds later', async () => {
  await using opened = await open();
  const { registry, clock } = opened;
  const until = new Date(clock.now().getTime() + 15_000);
  await registry.store.insert(collectorTurns, { id: 'collector', holder: 'somebody else', until });
  await expect(collect(registry)).rejects.toMatchObject({ name: 'CollectorBusyError' });
  await clock.advance(16_000);
  expect((await collect(registry)).summary.type).toBe('collected');
});

test('it happens by itself, in time, and leaves a line in the log and figures', async () => {
  await using opened = await open({ everyMs: hourMs });
  const { registry, clock } = opened;
  await push(registry, 'latest', 'old');
  await push(registry, 'latest', 'current');
  await clock.advance(2 * leaseMs);
  const later = async () => {
    await clock.advance(hourMs / 4);
    return await blobCount(registry);
  };
  await expect.poll(later).toBe(2);
  const isLogged = () =>
    registry.logLines.some((line) => line.includes('Garbage collected') && line.includes('"manifests":1'));
  await expect.poll(isLogged).toBe(true);
  const text = await registry.metrics.metrics();
  expect(text).toContain('berth_registry_collection_collected_total{what="manifests"} 1');
  expect(text).toMatch(/berth_registry_collection_freed_bytes_total [1-9]/);
  expect(text).toMatch(/berth_registry_collection_last_success_timestamp_seconds [1-9]/);
});

test('where a manifest is damaged nothing goes, since nobody knows what it keeps', async () => {
  await using opened = await open();
  const { registry, clock } = opened;
  const image = await push(registry, 'v1');
  const id = contentId(repository, image.digest);
  await registry.store.update(manifests, id, (manifest) => ({ ...manifest, bytes: Buffer.from('{') }));
  await clock.advance(2 * leaseMs);
  const { events, summary } = await collect(registry);
  expect(events[0]).toMatchObject({ type: 'skipped', repository });
  expect([summary.links, await blobCount(registry)]).toEqual([0, 2]);
});
