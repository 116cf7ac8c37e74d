import { randomBytes } from 'node:crypto';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { openInProcessQueue } from '../../core/queue/in-process.ts';
import { newBackend } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { newBackendId } from '../../model/ids.ts';
import type { Engine } from '../docker/engine.ts';
import { hasCapacity, hasCapacityFor, offeredMemory, promisedMemory } from './capacity.ts';
import type { Run } from '../lifecycle/run.ts';
import type { WorkerSettings } from '../settings.ts';
import { openWorkerFixture } from '../testing/fixture.ts';
import { openTestEngine } from '../testing/test-engine.ts';
import { eventually, polite, whyNoTests } from '../testing/test-platform.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';

const mib = 1024 * 1024;

function backendOf(memoryBytes?: number): Backend {
  const limits = memoryBytes === undefined ? {} : { memoryBytes };
  return newBackend(backendPlan({ id: newBackendId(), limits }), new Date());
}

function nodeOf(running: readonly Backend[], claiming: readonly Backend[], settings: Partial<WorkerSettings>) {
  return {
    engine: { memoryBytes: 1000 * mib },
    runs: new Map(running.map((backend) => [backend.id, { backend } as Run])),
    claiming: new Map(claiming.map((backend) => [backend.id, backend])),
    settings: { defaultMemoryBytes: 100 * mib, ...settings } as WorkerSettings,
  } as Parameters<typeof hasCapacity>[0];
}

describe('the capacity of a node', () => {
  it('is twice the memory of its machine, unless configured', () => {
    expect(offeredMemory(nodeOf([], [], {}))).toBe(2000 * mib);
    expect(offeredMemory(nodeOf([], [], { offeredMemoryBytes: 5 * mib }))).toBe(5 * mib);
    expect(offeredMemory({ ...nodeOf([], [], {}), engine: { memoryBytes: 0 } as Engine })).toBe(Infinity);
  });

  it('is used up by the limits of backends that run or are being claimed', () => {
    const node = nodeOf([backendOf(300 * mib), backendOf()], [backendOf(50 * mib)], { offeredMemoryBytes: 500 * mib });
    expect(promisedMemory(node)).toBe(450 * mib);
    expect(hasCapacityFor(node, { memoryBytes: 50 * mib })).toBe(true);
    expect(hasCapacityFor(node, { memoryBytes: 50 * mib + 1 })).toBe(false);
    expect(hasCapacityFor(node, {})).toBe(false);
    expect(hasCapacity(node)).toBe(true);
    expect(hasCapacity(nodeOf([backendOf(500 * mib)], [], { offeredMemoryBytes: 500 * mib }))).toBe(false);
  });

  it('is also limited by the number of backends', () => {
    const node = nodeOf([backendOf()], [backendOf()], { maxBackends: 2 });
    expect(hasCapacity(node)).toBe(false);
    expect(hasCapacityFor(node, { memoryBytes: 1 })).toBe(false);
    expect(hasCapacity(nodeOf([backendOf()], [backendOf()], { maxBackends: 3 }))).toBe(true);
  });

  it('is infinite if memory is not limited', () => {
    const crowd = Array.from({ length: 100 }, () => backendOf(1e12));
    expect(hasCapacityFor(nodeOf(crowd, [], { offeredMemoryBytes: Infinity }), { memoryBytes: 1e12 })).toBe(true);
  });
});

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`a node with limited memory ${why ?? ''}`, () => {
  it('claims backends that fit before those that do not, and the others when there is capacity', async () => {
    await using small = await openWorkerFixture({ offeredMemoryBytes: 300 * mib });
    const { platform } = small;
    const imageDigest = await platform.images.add(polite);
    const schedule = async (sizeMib: number) =>
      await platform.schedule({ imageDigest, limits: { memoryBytes: sizeMib * mib } });
    const first = await schedule(200);
    await platform.until(first, 'ready');
    const large = await schedule(150);
    const fits = await schedule(100);
    await platform.until(fits, 'ready');
    expect(await platform.get(large)).toMatchObject({ status: 'scheduled' });
    expect(await platform.get(large)).not.toHaveProperty('node');
    const metrics = await platform.metrics.metrics();
    expect(metrics).toContain(`berth_node_memory_offered_bytes ${300 * mib}`);
    expect(metrics).toContain(`berth_node_memory_promised_bytes ${300 * mib}`);
    await platform.end(first);
    await platform.until(large, 'ready');
    for (const id of [large, fits]) await platform.end(id);
  });

  it('publishes backends for which it has no capacity, and a node with capacity claims them at once', async () => {
    const node = `test-${randomBytes(5).toString('hex')}`;
    await using small = await openWorkerFixture({ offeredMemoryBytes: 100 * mib });
    const { platform } = small;
    // With a stopped clock and no jobs, it reads the store only when a message arrives.
    const clock = new ManualClock(new Date());
    await using queue = openInProcessQueue({ clock, log: silentLog() });
    await using other = await openTestEngine(node);
    const settings = { node, offeredMemoryBytes: 1000 * mib };
    const { engine } = other;
    await using _worker = await platform.openWorker({ settings, clock, queue, engine, metrics: new Registry() });
    const imageDigest = await platform.images.add(polite);
    const large = await platform.schedule({ imageDigest, limits: { memoryBytes: 200 * mib } });
    const claimed = await eventually(async () => {
      const backend = await platform.get(large);
      return backend.node === undefined ? undefined : backend;
    });
    expect(claimed.node).toBe(node);
    await platform.declareLost(large);
  });
});
