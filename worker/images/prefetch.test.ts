// Takes about 20 s
import { statfs } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { prefetchJob, nodeQueue } from '../../contract/jobs.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog } from '../../core/log/log.ts';
import { upsert } from '../../core/store/upsert.ts';
import { imageId, images } from '../../model/image.ts';
import { newService, services } from '../../model/service.ts';
import type { PrefetchResult } from '../metrics.ts';
import { openGatedPlatform } from '../testing/gated-platform.ts';
import type { GatedPlatform } from '../testing/gated-platform.ts';
import { eventually, polite, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform, TestWorkerOptions } from '../testing/test-platform.ts';
import type { Worker } from '../worker.ts';

const why = await whyNoTests();

const repository = 'acme/draw';

/** The request to the engine to pull an image. */
const pulling = /^POST \S*\/images\/create/;

/** The request to the engine for an image's configuration: a start and a prefetch begin with it. */
const inspecting = /^GET \S*\/images\/\S+\/json/;

describe.skipIf(why !== undefined)(`prefetching on a real engine ${why ?? ''}`, () => {
  let fixture: GatedPlatform;
  let gate: GatedPlatform['gate'];
  let platform: TestPlatform;
  let worker: Worker | undefined;
  beforeEach(async () => {
    fixture = await openGatedPlatform();
    ({ gate, platform } = fixture);
  });
  afterEach(async () => {
    worker = undefined;
    await fixture?.[Symbol.asyncDispose]();
  });

  async function open(options?: TestWorkerOptions): Promise<void> {
    worker = await fixture.openWorker(options);
  }

  /** Stores an image, as a push does. */
  async function addImage(tag: string, given?: string, sizeBytes = 1): Promise<string> {
    const digest = given ?? (await platform.images.add(polite));
    const uploadTime = await platform.store.now();
    await platform.store.insert(images, {
      id: imageId(repository, tag, digest),
      repository,
      tag,
      digest,
      uploadTime,
      sizeBytes,
    });
    return digest;
  }

  /** Creates environments with these names that spawn the tags of the same names. */
  async function spawnTags(tags: readonly string[]): Promise<void> {
    const createdAt = await platform.store.now();
    const { cluster } = platform;
    const environments = tags.map((tag) => ({ name: tag, imageTag: tag, cluster, createdAt }));
    await upsert(platform.store, services, repository, () => ({
      ...newService({ account: 'acme', name: 'draw', cluster }, createdAt),
      environments,
    }));
  }

  async function notify(tag: string, digest: string): Promise<void> {
    const image = imageId(repository, tag, digest);
    await platform.queue.add(nodeQueue(platform.node), prefetchJob, { image }, { id: `fetch-${repository}@${digest}` });
  }

  async function metric(name: string, label: string): Promise<number> {
    const text = await platform.metrics.metrics();
    return Number(new RegExp(`^${name}\\{${label}\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  }

  async function untilCounted(result: PrefetchResult, count = 1): Promise<void> {
    await eventually(async () =>
      (await metric('berth_image_prefetches_total', `result="${result}"`)) === count ? true : undefined,
    );
  }

  const untilHeld = async (count: number) =>
    await eventually(async () => (platform.images.heldRequests === count ? true : undefined));
  const has = async (digest: string) =>
    await platform.engine.engine.images.has(`${platform.images.host}/${repository}@${digest}`);

  it('pulls an image once, before its first backend needs it', async () => {
    await open();
    const digest = await addImage('latest');
    await spawnTags(['latest']);
    expect(await has(digest)).toBe(false);
    await notify('latest', digest);
    await untilCounted('fetched');
    expect(await has(digest)).toBe(true);
    await notify('latest', digest);
    await untilCounted('present');
    const id = await platform.schedule({ imageDigest: digest });
    await platform.until(id, 'ready');
    expect(platform.images.layerRequests).toBe(1);
    expect(platform.images.subjects).toEqual(new Set([`node:${platform.node}`]));
    await platform.end(id);
  });

  it('skips an image that no environment spawns any more', async () => {
    await open();
    const old = await addImage('latest');
    const next = await addImage('latest');
    await spawnTags(['latest']);
    await notify('latest', old);
    await untilCounted('unneeded', 1);
    await notify('latest', 'sha256:gone');
    await untilCounted('unneeded', 2);
    await notify('latest', next);
    await untilCounted('fetched');
    expect(await has(old)).toBe(false);
  });

  it('does nothing if it is turned off', async () => {
    await open({ settings: { prefetchEnabled: false } });
    const digest = await addImage('latest');
    await spawnTags(['latest']);
    const id = await platform.schedule({ imageDigest: digest });
    await platform.until(id, 'ready');
    const inspected = gate.asked(inspecting);
    await notify('latest', digest);
    // Its job is added after the notification, and takes longer.
    await platform.end(id);
    expect(gate.asked(inspecting)).toBe(inspected);
  });

  it('prefetches two images at a time, and delays neither stops nor starts of backends', async () => {
    // With a stopped clock, so that no pass over the store finds the backends.
    const clock = new ManualClock(new Date());
    const ample = { startTimeoutSeconds: 3_600, pullTimeoutSeconds: 3_600 };
    await open({ clock, settings: { maxConcurrentStarts: 1, ...ample } });
    const untilReady = async (id: string) =>
      await eventually(async () => {
        await clock.advance(5);
        return (await platform.get(id)).readyAt;
      });
    const imageDigest = await platform.images.add(polite);
    const running = await platform.schedule({ imageDigest });
    await untilReady(running);
    const release = Promise.withResolvers<void>();
    platform.images.holdLayers(release.promise);
    // More jobs than a node handles at a time.
    const tags = Array.from({ length: 18 }, (_, i) => `v${i}`);
    await spawnTags(tags);
    for (const tag of tags) await notify(tag, await addImage(tag));
    await untilHeld(2);
    await platform.end(running);
    const started = await platform.schedule({ imageDigest });
    await untilReady(started);
    await platform.end(started);
    expect(platform.images.layerRequests).toBe(3);
    release.resolve();
    await untilCounted('fetched', tags.length);
  });

  it('is shared with a backend that needs the image, and yields to a backend that needs another image', async () => {
    await open();
    const [wanted, other] = [await addImage('wanted'), await platform.images.add(polite)];
    await spawnTags(['wanted']);
    const first = Promise.withResolvers<void>();
    platform.images.holdLayers(first.promise);
    await notify('wanted', wanted);
    await untilHeld(1);
    const inspected = gate.asked(inspecting);
    const joining = await platform.schedule({ imageDigest: wanted });
    // The start finds that the image is missing.
    await eventually(async () => (gate.asked(inspecting) > inspected ? true : undefined));
    first.resolve();
    await platform.until(joining, 'ready');
    expect(platform.images.layerRequests).toBe(1);

    // The start joins the pull, or on a busy machine begins one of its own when the image is there.
    const pulls = gate.asked(pulling);
    const next = await addImage('next');
    await spawnTags(['next']);
    const second = Promise.withResolvers<void>();
    platform.images.holdLayers(second.promise);
    await notify('next', next);
    await untilHeld(1);
    const passing = await platform.schedule({ imageDigest: other });
    // The second of these pulls is the backend's, and the first was cancelled.
    await eventually(async () =>
      gate.asked(pulling) === pulls + 2 && gate.openAfter(pulling) === 1 ? true : undefined,
    );
    second.resolve();
    await platform.until(passing, 'ready');
    // The prefetch is retried later.
    await untilCounted('fetched', 2);
    expect(await has(next)).toBe(true);
    await Promise.all([platform.end(joining), platform.end(passing)]);
  });

  it('fails after increasing pauses if the registry does not serve the image', async () => {
    const clock = new ManualClock(new Date());
    await open({ clock });
    const digest = await addImage('latest', `sha256:${'0'.repeat(64)}`);
    await spawnTags(['latest']);
    await notify('latest', digest);
    const untilFailed = async (times: number) =>
      await eventually(async () =>
        (await metric('berth_docker_errors_total', 'op="image-pull"')) === times ? true : undefined,
      );
    for (const [times, pauseMs] of [2_000, 10_000, 60_000, 300_000].entries()) {
      await untilFailed(times + 1);
      await clock.advance(pauseMs - 1);
      expect(await metric('berth_docker_errors_total', 'op="image-pull"')).toBe(times + 1);
      await clock.advance(1);
    }
    await untilCounted('failed');
    await untilFailed(5);
  });

  it('skips an image for which the disk is too full, logs this once, and still spawns its backends', async () => {
    const logged: Record<string, unknown>[] = [];
    const log = openLog('warn', { write: (line) => void logged.push(JSON.parse(line) as Record<string, unknown>) });
    await open({ log, settings: { prefetchReserveBytes: Number.MAX_SAFE_INTEGER } });
    const digest = await addImage('latest');
    await spawnTags(['latest']);
    await notify('latest', digest);
    await untilCounted('no-space');
    const [folder] = platform.engine.engine.imageFolders;
    const image = imageId(repository, 'latest', digest);
    const fields = { image, folder, neededBytes: 4, reserveBytes: Number.MAX_SAFE_INTEGER };
    expect(logged).toEqual([
      expect.objectContaining({ level: 'warn', freeBytes: expect.any(Number) as number, ...fields }),
    ]);
    expect(await has(digest)).toBe(false);
    const id = await platform.schedule({ imageDigest: digest });
    await platform.until(id, 'ready');
    await platform.end(id);
  });

  it('counts prefetches in progress, and prefetches a skipped image once there is space', async () => {
    await open({ settings: { prefetchReserveBytes: 0 } });
    const { bavail, bsize } = await statfs(platform.engine.engine.imageFolders[0] ?? '');
    // One image fits, two do not: an image needs four times its size.
    const sizeBytes = Math.floor((bavail * bsize * 0.6) / 4);
    const first = await addImage('first', undefined, sizeBytes);
    const second = await addImage('second', undefined, sizeBytes);
    await spawnTags(['first', 'second']);
    const release = Promise.withResolvers<void>();
    platform.images.holdLayers(release.promise);
    await notify('first', first);
    await untilHeld(1);
    await notify('second', second);
    await untilCounted('no-space');
    expect(await has(second)).toBe(false);
    release.resolve();
    await untilCounted('fetched', 1);
    await notify('second', second);
    await untilCounted('fetched', 2);
    expect(await has(second)).toBe(true);
  });

  it('prefetches if the disk of the engine is unknown', async () => {
    const engine = { ...platform.engine.engine, imageFolders: [] };
    await open({ engine, settings: { prefetchReserveBytes: Number.MAX_SAFE_INTEGER } });
    const digest = await addImage('latest');
    await spawnTags(['latest']);
    await notify('latest', digest);
    await untilCounted('fetched');
    expect(await has(digest)).toBe(true);
  });

  it('is cancelled when the worker closes', async () => {
    await open({ settings: { pullTimeoutSeconds: 300 } });
    const digest = await addImage('latest');
    await spawnTags(['latest']);
    platform.images.holdLayers(Promise.withResolvers<void>().promise);
    await notify('latest', digest);
    await untilHeld(1);
    expect(gate.openAfter(pulling)).toBe(1);
    await worker?.[Symbol.asyncDispose]();
    await eventually(async () => (gate.openAfter(pulling) === 0 ? true : undefined));
  });
});
