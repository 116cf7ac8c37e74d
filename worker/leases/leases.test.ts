// Takes about 25 s
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { hardStopBeforeMs, keyId, keys, leaseMs, renewEveryMs, softStopBeforeMs } from '../../model/key.ts';
import { nodeLeaseMs, nodes } from '../../model/node.ts';
import { steered, unreachableWhile } from '../../test/kit/ports/steered.ts';
import type { PortCall } from '../../test/kit/ports/steered.ts';
import { eventually, openTestPlatform, polite, stubborn, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import type { Worker } from '../worker.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`the lease of a key ${why ?? ''}`, () => {
  let platform: TestPlatform;
  let clock: ManualClock;
  let worker: Worker;
  /** Makes the worker's store, or one collection of it, unreachable, and counts its calls in progress. */
  let away: { isOff: boolean; inProgress: number; collection?: string };
  beforeEach(async () => {
    platform = await openTestPlatform();
    clock = new ManualClock(new Date());
    platform.useClock(clock);
    await openWorker({ isShared: true });
  });
  afterEach(async () => {
    away.isOff = false;
    await worker?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  async function openWorker({ isShared }: { isShared: boolean }): Promise<void> {
    const cut: typeof away = { isOff: false, inProgress: 0 };
    away = cut;
    const isCut = ({ collection }: PortCall) => cut.isOff && (cut.collection ?? collection) === collection;
    const reachable = unreachableWhile(isCut);
    const onCall = async (call: PortCall) => {
      cut.inProgress += 1;
      try {
        return await reachable(call);
      } finally {
        cut.inProgress -= 1;
      }
    };
    const store = steered(platform.store, { isShared, onCall });
    worker = await platform.openWorker({ clock, store, settings: { stopGraceSeconds: 30, startTimeoutSeconds: 3600 } });
  }

  const isRunning = async (id: string) =>
    (await platform.engine.engine.containers.list()).some(
      ({ backend, phase }) => backend === id && phase === 'running',
    );

  /** Advances the worker's clock in small steps until a condition holds. */
  async function passUntil<T>(ask: () => Promise<T | undefined>): Promise<T> {
    return await eventually(async () => {
      await clock.advance(20);
      return await ask();
    });
  }

  /** Advances the worker's clock in steps, each with enough real time to renew: the store answers and the lease is written. */
  async function pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 250) {
      await clock.advance(250);
      await platform.store.update(keys, 'acme/draw/room', (key) => ({ ...key }));
      await writeFile(join(platform.folder, 'renewal'), '');
      await rename(join(platform.folder, 'renewal'), join(platform.folder, 'renewed'));
    }
  }

  async function readyBackend(script: string): Promise<string> {
    const claimed = await platform.claim('room');
    const id = await platform.schedule({ imageDigest: await platform.images.add(script), ...claimed });
    await platform.until(id, 'ready', clock);
    return id;
  }

  it('is renewed while the backend runs', async () => {
    const id = await readyBackend(polite);
    const name = keyId('acme', 'draw', 'room');
    const before = (await platform.store.get(keys, name))?.leaseUntil.getTime() ?? Infinity;
    await clock.advance(renewEveryMs);
    await passUntil(async () => {
      const now = (await platform.store.get(keys, name))?.leaseUntil.getTime() ?? 0;
      return now > before ? true : undefined;
    });
    await pass(2 * leaseMs);
    expect(await platform.get(id)).toMatchObject({ status: 'ready', live: true });
    expect(await isRunning(id)).toBe(true);
    expect((await platform.store.get(nodes, platform.node))?.cluster).toBe(platform.cluster);
  });

  it('stops the backend softly before the lease ends, although nothing can be written', async () => {
    const id = await readyBackend(polite);
    away.isOff = true;
    await clock.advance(leaseMs - softStopBeforeMs - renewEveryMs - 1_000);
    expect(await isRunning(id)).toBe(true);
    await clock.advance(renewEveryMs + 1_000);
    await eventually(async () => ((await isRunning(id)) ? undefined : true));
    expect((await platform.get(id)).status).toBe('ready');
    away.isOff = false;
    const ended = await platform.until(id, 'terminated', clock);
    expect(ended.history.slice(5)).toMatchObject([
      { status: 'terminating', terminationKind: 'soft', terminationReason: 'keyexpired' },
      { status: 'terminated', terminationKind: 'soft', terminationReason: 'keyexpired', exitCode: 0 },
    ]);
  });

  it('kills a backend that does not stop in time', async () => {
    const id = await readyBackend(stubborn);
    away.isOff = true;
    await clock.advance(leaseMs - hardStopBeforeMs - renewEveryMs - 1_000);
    expect(await isRunning(id)).toBe(true);
    await clock.advance(renewEveryMs + 1_000);
    await eventually(async () => ((await isRunning(id)) ? undefined : true));
    away.isOff = false;
    const ended = await platform.until(id, 'terminated', clock);
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'hard', terminationReason: 'keyexpired' });
  });

  it('survives a shorter outage of the store', async () => {
    const id = await readyBackend(polite);
    for (let round = 0; round < 3; round += 1) {
      away.isOff = true;
      await pass(20_000);
      away.isOff = false;
      await pass(3_000);
    }
    await pass(10_000);
    expect(await platform.get(id)).toMatchObject({ status: 'ready', live: true });
    expect(await isRunning(id)).toBe(true);
  });

  it('does not protect a backend from a dead node: the backend is stopped before its node counts as dead', async () => {
    const keyed = await readyBackend(polite);
    const keyless = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    await platform.until(keyless, 'ready', clock);
    away.collection = nodes.name;
    away.isOff = true;
    const leaseOfNode = async () => (await platform.store.get(nodes, platform.node))?.leaseUntil;
    await eventually(async () => away.inProgress === 0 || undefined);
    const leaseUntil = await leaseOfNode();
    await pass(nodeLeaseMs - softStopBeforeMs - renewEveryMs - 1_000);
    expect(await platform.get(keyed)).toMatchObject({ status: 'ready' });
    await pass(renewEveryMs + 1_000);
    await eventually(async () => ((await platform.get(keyed)).live ? undefined : true));
    expect((await platform.get(keyed)).history.at(-1)).toMatchObject({ terminationReason: 'keyexpired' });
    expect(await leaseOfNode()).toEqual(leaseUntil);
    expect(await platform.get(keyless)).toMatchObject({ status: 'ready' });
    away.isOff = false;
    await platform.end(keyless);
  });

  it('is renewed first after the worker was frozen, and stops no backend that still holds its key', async () => {
    const id = await readyBackend(polite);
    await clock.freeze(leaseMs);
    await pass(leaseMs);
    expect(await platform.get(id)).toMatchObject({ status: 'ready', live: true });
    expect(await isRunning(id)).toBe(true);
  });

  it('stops the backend soon after the worker was frozen, if it cannot be renewed then', async () => {
    const id = await readyBackend(stubborn);
    away.isOff = true;
    await clock.freeze(leaseMs);
    expect(await isRunning(id)).toBe(true);
    await clock.advance(6_000);
    await eventually(async () => ((await isRunning(id)) ? undefined : true));
    away.isOff = false;
    const ended = await platform.until(id, 'terminated', clock);
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'keyexpired' });
  });

  it('stops no backend for an outage of the store if no other process shares the store', async () => {
    await worker[Symbol.asyncDispose]();
    await openWorker({ isShared: false });
    const id = await readyBackend(polite);
    const leaseUntil = async () =>
      (await platform.store.get(keys, keyId('acme', 'draw', 'room')))?.leaseUntil.getTime() ?? 0;
    away.isOff = true;
    // A renewal may be under way.
    await eventually(async () => (away.inProgress === 0 ? true : undefined));
    const before = await leaseUntil();
    await pass(leaseMs + nodeLeaseMs);
    expect(await isRunning(id)).toBe(true);
    expect(await leaseUntil()).toBe(before);
    away.isOff = false;
    await passUntil(async () => ((await leaseUntil()) > before ? true : undefined));
    expect(await platform.get(id)).toMatchObject({ status: 'ready', live: true });
  });

  it('stops the backend at once when its key was assigned to another backend', async () => {
    const id = await readyBackend(stubborn);
    await platform.claim('room');
    await clock.advance(renewEveryMs);
    const ended = await platform.until(id, 'terminated', clock);
    expect(ended.history.slice(5).map(({ status }) => status)).toEqual(['hard-terminating', 'terminated']);
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'hard', terminationReason: 'keyexpired' });
  });

  it('is needed to start: a backend whose key was assigned to another one never runs', async () => {
    const late = await platform.claim('room');
    const holder = await readyBackend(polite);
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite), ...late });
    const ended = await platform.until(id, 'terminated', clock);
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'hard', terminationReason: 'keyexpired' });
    expect(ended.history.map(({ status }) => status)).not.toContain('waiting');
    expect(await isRunning(id)).toBe(false);
    expect(await platform.get(holder)).toMatchObject({ status: 'ready', live: true });
  });

  it('lets an ending backend finish although its key has a successor', async () => {
    const id = await readyBackend(stubborn);
    await platform.stop(id, 'soft');
    await platform.until(id, 'terminating', clock);
    await platform.claim('room');
    await clock.advance(25_000);
    expect(await isRunning(id)).toBe(true);
    // The grace time may have begun late: it counts from the signal.
    const ended = await eventually(async () => {
      await clock.advance(1_000);
      const backend = await platform.get(id);
      return backend.live ? undefined : backend;
    });
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'hard', terminationReason: 'external' });
  });
});
