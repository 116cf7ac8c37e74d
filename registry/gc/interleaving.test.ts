// Takes about 10 s
/**
 * A push during garbage collection, and garbage collection during a push, at every step of the other. Acknowledged content must
 * exist; a rejected push must succeed when it is repeated.
 */
import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { services } from '../../model/service.ts';
import { collect, advanceUntilDone } from '../../test/kit/registry/garbage-collection.ts';
import { openTestRegistry, putManifest, sha256 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';

const repository = 'acme/draw';
const leaseMs = 24 * 3_600_000;
const imageType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';

/** Testing every step takes minutes: an ordinary run tests some of them. */
const stride = process.env['BERTH_TEST_SOAK_SECONDS'] === undefined ? 2 : 1;
const timeout = 600_000;
const firstStep = Math.floor(Math.random() * stride);

const layer = 'a layer of both repositories';
const config = '{"os":"linux"}';

const image = {
  schemaVersion: 2,
  mediaType: imageType,
  config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...descriptorOf(config) },
  layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...descriptorOf(layer) }],
};
const index = {
  schemaVersion: 2,
  mediaType: indexType,
  manifests: [{ mediaType: imageType, ...descriptorOf(JSON.stringify(image)) }],
};

function descriptorOf(text: string) {
  return { digest: sha256(text), size: text.length };
}

/** Actions of clients. Each returns whether every request was acknowledged. */
const pushes: Readonly<Record<string, (registry: TestRegistry) => Promise<boolean>>> = {
  'pushes everything': async (registry) => {
    for (const blob of [layer, config]) if (!(await pushed(registry, blob))) return false;
    return (await putManifest(registry, { repository, reference: 'new' }, image)).status === 201;
  },
  'pushes the blobs that HEAD reports as missing': async (registry) => {
    for (const blob of [layer, config]) {
      const head = await registry.as(`/v2/${repository}/blobs/${sha256(blob)}`, { method: 'HEAD' });
      if (head.status !== 200 && !(await pushed(registry, blob))) return false;
    }
    return (await putManifest(registry, { repository, reference: 'new' }, image)).status === 201;
  },
  'mounts from another repository': async (registry) => {
    for (const blob of [layer, config]) {
      const path = `/v2/${repository}/blobs/uploads/?mount=${sha256(blob)}&from=acme/source`;
      const { status } = await registry.as(path, { method: 'POST' });
      if (status !== 201 && !(await pushed(registry, blob))) return false;
    }
    return (await putManifest(registry, { repository, reference: 'new' }, image)).status === 201;
  },
  'pushes an index of an image that HEAD reports as present': async (registry) => {
    const path = `/v2/${repository}/manifests/${sha256(JSON.stringify(image))}`;
    if ((await registry.as(path, { method: 'HEAD' })).status !== 200) {
      for (const blob of [layer, config]) if (!(await pushed(registry, blob))) return false;
      const child = { repository, reference: sha256(JSON.stringify(image)) };
      if ((await putManifest(registry, child, image)).status !== 201) return false;
    }
    return (await putManifest(registry, { repository, reference: 'new' }, index)).status === 201;
  },
  'pushes an index without checking': async (registry) =>
    (await putManifest(registry, { repository, reference: 'new' }, index)).status === 201,
};

async function pushed(registry: TestRegistry, blob: string): Promise<boolean> {
  const path = `/v2/${repository}/blobs/uploads/?digest=${sha256(blob)}`;
  return (await registry.as(path, { method: 'POST', body: blob })).status === 201;
}

/** Pulls everything behind the tag and compares it. */
async function expectWhole(registry: TestRegistry, step: string): Promise<void> {
  const top = await registry.as(`/v2/${repository}/manifests/new`);
  expect([step, top.status]).toEqual([step, 200]);
  const isIndex = top.headers['content-type'] === indexType;
  expect(top.body.toString()).toBe(JSON.stringify(isIndex ? index : image));
  const child = await registry.as(`/v2/${repository}/manifests/${sha256(JSON.stringify(image))}`);
  expect([step, child.body.toString()]).toEqual([step, JSON.stringify(image)]);
  for (const blob of [layer, config]) {
    const { body } = await registry.as(`/v2/${repository}/blobs/${sha256(blob)}`);
    expect([step, body.toString()]).toEqual([step, blob]);
  }
}

async function expectNothingLeft(registry: TestRegistry, clock: ManualClock): Promise<void> {
  await registry.store.delete(services, repository);
  await clock.advance(2 * leaseMs);
  await collect(registry);
  const left: string[] = [];
  for await (const digest of registry.blobs.list()) left.push(digest);
  expect(left).toEqual([]);
}

/** Runs an action before the n-th call. */
function interleaver() {
  let left = Infinity;
  let action: (() => Promise<void>) | undefined;
  return {
    beforeCall: async () => {
      if (!action || left-- > 0) return;
      const run = action;
      action = undefined;
      await run();
    },
    at: (step: number, run: () => Promise<void>) => {
      left = step;
      action = run;
    },
    /** Whether there were enough calls to reach the step. */
    hasRun: () => action === undefined,
  };
}

async function open() {
  const clock = new ManualClock(new Date());
  const steps = interleaver();
  const gc = { everyMs: 1_000_000 * leaseMs, removalWaitMs: 0, keptUntaggedImages: 0 };
  const registry = await openTestRegistry({ clock, gc, beforeCall: steps.beforeCall });
  return { clock, steps, registry };
}

/** Creates an image that nothing needs, whose blobs are in another repository too, and whose leases have expired. */
async function prepareGarbage(registry: TestRegistry, clock: ManualClock): Promise<void> {
  for (const blob of [layer, config]) {
    await pushed(registry, blob);
    await registry.as(`/v2/acme/source/blobs/uploads/?mount=${sha256(blob)}&from=${repository}`, { method: 'POST' });
  }
  await putManifest(registry, { repository, reference: 'old' }, image);
  await registry.as(`/v2/${repository}/manifests/old`, { method: 'DELETE' });
  await clock.advance(2 * leaseMs);
}

for (const [what, push] of Object.entries(pushes)) {
  test.concurrent(`a client ${what} at any step of garbage collection`, { timeout }, async () => {
    const { clock, steps, registry } = await open();
    await using _closed = registry;
    let acknowledged = 0;
    for (let step = firstStep; ; step += stride) {
      await prepareGarbage(registry, clock);
      let wasAcknowledged: boolean | undefined;
      steps.at(step, async () => {
        wasAcknowledged = await advanceUntilDone(clock, push(registry));
      });
      await collect(registry);
      if (!steps.hasRun()) break;
      if (wasAcknowledged) {
        acknowledged += 1;
        await expectWhole(registry, `step ${step}`);
        // The next garbage collection keeps it too.
        await clock.advance(2 * leaseMs);
        await collect(registry);
        await expectWhole(registry, `after step ${step}`);
      }
      await expectNothingLeft(registry, clock);
    }
    expect(acknowledged).toBeGreaterThanOrEqual(stride === 1 ? 5 : 0);
  });

  test.concurrent(
    `garbage collection runs at any step of a client that ${what}, however long that takes`,
    { timeout },
    async () => {
      const { clock, steps, registry } = await open();
      await using _closed = registry;
      let acknowledged = 0;
      for (let step = firstStep; ; step += stride) {
        await prepareGarbage(registry, clock);
        steps.at(step, async () => {
          await clock.advance(2 * leaseMs);
          await collect(registry);
        });
        const wasAcknowledged = await push(registry);
        if (!steps.hasRun()) break;
        if (wasAcknowledged) {
          acknowledged += 1;
          await expectWhole(registry, `step ${step}`);
        }
        // Repeated, as a client does after an error.
        const isPushed = (await push(registry)) || (await pushes['pushes everything']?.(registry));
        expect([step, isPushed]).toEqual([step, true]);
        await expectWhole(registry, `again after step ${step}`);
        await clock.advance(2 * leaseMs);
        await collect(registry);
        await expectWhole(registry, `after step ${step}`);
        await expectNothingLeft(registry, clock);
      }
      expect(acknowledged).toBeGreaterThanOrEqual(stride === 1 ? 2 : 0);
    },
  );
}

test('without a push, the garbage of these tests is deleted', async () => {
  const { clock, registry } = await open();
  await using _closed = registry;
  await prepareGarbage(registry, clock);
  await collect(registry);
  expect((await registry.as(`/v2/${repository}/manifests/${sha256(JSON.stringify(image))}`)).status).toBe(404);
  await expectNothingLeft(registry, clock);
});
