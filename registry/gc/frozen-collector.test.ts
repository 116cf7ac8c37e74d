/**
 * A collector that is frozen in the middle of a removal for longer than its lease, as when its process is stopped. Meanwhile
 * another collector takes over the removal, and a client pushes the blob. An acknowledged push must survive when the first collector
 * resumes.
 */
import { expect, test, vi } from 'vitest';
import { silentLog } from '../../core/log/log.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { collect, advanceUntilDone } from '../../test/kit/registry/garbage-collection.ts';
import { testDrivers } from '../../test/kit/servers/drivers.ts';
import type { TestDrivers } from '../../test/kit/servers/drivers.ts';
import { openTestRegistry, pushBlob, sha256, withPauses } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';
import { blobLinks, tombstones } from '../content/documents.ts';
import { removeMarked } from './sweep-blobs.ts';
import { acquireLeaderLease } from './leader-lease.ts';

const repository = 'acme/draw';
const leaseMs = 24 * 3_600_000;
/** Longer than the leader lease. */
const frozenMs = 30_000;
const blob = 'a layer without links';
const digest = sha256(blob);

/** Actions of others while the collector is frozen. */
const meanwhile: Readonly<Record<string, (fixture: Fixture) => Promise<void>>> = {
  'another collector removes the bytes, and a client pushes them again': async (fixture) => {
    await collect(fixture.registry);
    await advanceUntilDone(fixture.clock, pushBlob(fixture.registry, repository, blob));
  },
  'a client pushes the bytes and waits, and another collector finds that they are linked': async (fixture) => {
    const pushing = pushBlob(fixture.registry, repository, blob);
    await expect.poll(async () => await links(fixture.registry)).toBe(1);
    await collect(fixture.registry);
    await advanceUntilDone(fixture.clock, pushing);
  },
};

interface Fixture {
  readonly registry: TestRegistry;
  readonly clock: ManualClock;
}

for (const drivers of testDrivers()) {
  for (const [what, happens] of Object.entries(meanwhile)) {
    const where = drivers === 'embedded' ? 'files' : 'GridFS';
    test(`frozen at any step: ${what} (${where})`, { timeout: 240_000 }, async () => {
      await using registry = await openFixture(drivers);
      const steps: string[] = [];
      for (let step = 0; ; step += 1) {
        const call = await freezeAt(registry, step, happens);
        if (call === undefined) break;
        steps.push(call);
        await expectPullable(registry, `resumed before ${call}, step ${step}`);
        await collect(registry);
        await expectPullable(registry, `collecting after ${call}, step ${step}`);
        await registry.store.delete(blobLinks, `${repository}@${digest}`);
      }
      // The last two calls, after the collector has confirmed its lease for the last time.
      expect(steps.slice(-2)).toEqual(['delete', 'delete']);
    });
  }
}

async function openFixture(drivers: TestDrivers) {
  const clock = new ManualClock(new Date());
  const gc = { everyMs: 1_000_000 * leaseMs, removalWaitMs: 0, keptUntaggedImages: 0 };
  return Object.assign(await openTestRegistry({ drivers, clock, gc }), { clock });
}

/** @returns the call before which the collector was frozen, or nothing if it completed. */
async function freezeAt(
  registry: Awaited<ReturnType<typeof openFixture>>,
  step: number,
  happens: (fixture: Fixture) => Promise<void>,
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
    // The monotonic clock of the machine has advanced.
    const realNow = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => realNow() + frozenMs);
  };
  const parts = { store: withPauses(store, freeze), blobs: withPauses(blobs, freeze), log: silentLog() };
  // The lease has its own clock, which is frozen, too.
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
