/**
 * A collector that stands still in the middle of a removal for longer than it has its turn, as a process does that is stopped
 * or swapped out. Meanwhile another takes the removal up, and somebody pushes the blob. What was acknowledged must outlive
 * the moment in which the first one goes on.
 */
import { expect, test, vi } from 'vitest';
import { ManualClock } from '../../core/clock/manual-clock.ts';
import { collect, patiently } from '../../test/kit/registry/garbage-collection.ts';
import { testDrivers } from '../../test/kit/servers/drivers.ts';
import type { TestDrivers } from '../../test/kit/servers/drivers.ts';
import { openTestRegistry, pushBlob, sha256, withPauses } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';
import { blobLinks, tombstones } from '../content/documents.ts';
import { removeMarked } from './sweep-blobs.ts';
import { acquireLeaderLease } from './leader-lease.ts';

const repository = 'acme/draw';
const leaseMs = 24 * 3_600_000;
/** Longer than a turn. */
const frozenMs = 30_000;
const blob = 'a layer that nobody has had for long';
const digest = sha256(blob);

/** What happens while the collector stands still. */
const meanwhile: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'another removes the bytes, and they are pushed again': async (scene) => {
    await collect(scene.registry);
    await patiently(scene.clock, pushBlob(scene.registry, repository, blob));
  },
  'somebody pushes them, waits, and another finds that they are needed': async (scene) => {
    const pushing = pushBlob(scene.registry, repository, blob);
    await vi.waitFor(async () => expect(await links(scene.registry)).toBe(1));
    await collect(scene.registry);
    await patiently(scene.clock, pushing);
  },
};

interface Scene {
  readonly registry: TestRegistry;
  readonly clock: ManualClock;
}

for (const drivers of testDrivers()) {
  for (const [what, happens] of Object.entries(meanwhile)) {
    const where = drivers === 'embedded' ? 'files' : 'GridFS';
    test(`at any step of a collector: ${what} (${where})`, { timeout: 240_000 }, async () => {
      await using registry = await openScene(drivers);
      const steps: string[] = [];
      for (let step = 0; ; step += 1) {
        const call = await freezeAt(registry, step, happens);
        if (call === undefined) break;
        steps.push(call);
        await expectPullable(registry, `going on before ${call}, step ${step}`);
        await collect(registry);
        await expectPullable(registry, `collecting after ${call}, step ${step}`);
        await registry.store.delete(blobLinks, `${repository}@${digest}`);
      }
      // The last two: when it has made sure of its turn for the last time.
      expect(steps.slice(-2)).toEqual(['delete', 'delete']);
    });
  }
}

async function openScene(drivers: TestDrivers) {
  const clock = new ManualClock(new Date());
  const gc = { everyMs: 1_000_000 * leaseMs, removalWaitMs: 0, keptUntaggedImages: 0 };
  return Object.assign(await openTestRegistry({ drivers, clock, gc }), { clock });
}

/** @returns before which call the collector stood still; nothing if it came to its end. */
async function freezeAt(
  registry: Awaited<ReturnType<typeof openScene>>,
  step: number,
  happens: (scene: Scene) => Promise<void>,
): Promise<string | undefined> {
  const { clock, store, blobs } = registry;
  if (!(await blobs.stat(digest))) await pushBlob(registry, repository, blob);
  await store.delete(blobLinks, `${repository}@${digest}`);
  await store.delete(tombstones, digest);
  await store.insert(tombstones, { id: digest, state: 'marked', at: clock.now() });
  await clock.advance(1_000);
  let left = step;
  let frozenAt: string | undefined;
  const freeze = async (call: string): Promise<void> => {
    if (left-- !== 0) return;
    frozenAt = call;
    await clock.advance(frozenMs);
    await happens({ registry, clock });
    // The time of the whole machine has gone on.
    const realNow = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => realNow() + frozenMs);
  };
  const parts = { store: withPauses(store, freeze), blobs: withPauses(blobs, freeze) };
  // A clock of its own, which stands still as it does.
  const lease = await acquireLeaderLease({ store, clock: new ManualClock(clock.now()) }, () => {});
  if (!lease) throw new Error('Another collector has the lease');
  try {
    await removeMarked({ ...parts, gc: { removalWaitMs: 0 }, lease, signal: lease.lost });
  } catch (error) {
    if (!lease.lost.aborted) throw error;
  } finally {
    vi.restoreAllMocks();
    await lease[Symbol.asyncDispose]();
  }
  return frozenAt;
}

async function links({ store }: TestRegistry): Promise<number> {
  return (await store.find(blobLinks, { index: 'byDigest', equals: { digest } })).length;
}

async function expectPullable(registry: TestRegistry, when: string): Promise<void> {
  const { status, body } = await registry.as(`/v2/${repository}/blobs/${digest}`);
  expect([when, status, body.toString()]).toEqual([when, 200, blob]);
}
