// Takes about 105 s
/** Redis stops, and restarts without data: work is delayed, but no backend, key or session is lost. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { leaseMs } from '../../model/key.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { startRedis } from '../kit/servers/redis.ts';
import type { RedisServer } from '../kit/servers/redis.ts';
import { Fixture } from './fixture.ts';

/** Longer than the leases of keys and nodes, which must be renewed without Redis. */
const outageMs = leaseMs + 5_000;

const [engine] = testEngines();
const shared = testDrivers().find((each) => each !== 'embedded');

describe.skipIf(!engine || !shared)('the Redis server of a platform', () => {
  let redis: RedisServer;
  let fixture: Fixture;

  beforeAll(async () => {
    if (!engine || !shared) return;
    redis = await startRedis();
    fixture = await Fixture.open({ engine, drivers: { ...shared, redisUrl: redis.url } });
    await fixture.push('serve');
  });
  afterAll(async () => {
    await fixture?.[Symbol.asyncDispose]();
    await redis?.[Symbol.asyncDispose]();
  });

  test('while it is stopped, every connect is answered, and its backend starts without a notification', async () => {
    const before = await fixture.connectReady('serve', { key: 'before' });
    await redis.stop('SIGKILL');
    const during = await Promise.all(
      Array.from({ length: 2 }, (_, i) => fixture.connect('serve', { key: `during-${i}` })),
    );
    expect(during.every(({ spawned }) => spawned)).toBe(true);
    expect((await fixture.connect('serve', { key: 'before' })).backend_id).toBe(before.backend_id);
    // The proxy holds the request until the backend is ready. Worker and proxy can only learn of the backend from the store.
    for (const { url } of during) expect((await fetch(url)).status).toBe(200);
    expect((await fetch(before.url)).status).toBe(200);
    const [first] = during;
    if (first) await fixture.terminate(first);
    if (first) await fixture.statusesUntil(first, 'terminated');
    await redis.start();
    const after = await fixture.connect('serve', { spawn: { max_idle_seconds: 1 } });
    expect((await fetch(after.url)).status).toBe(200);
    await fixture.statusesUntil(after, 'terminated');
  });

  test('while it is silent, no backend is swept, because open connections are unknown', async () => {
    const connection = await fixture.connectReady('serve', { spawn: { max_idle_seconds: 5 } });
    await redis.stop();
    const [readyAt] = (await fixture.backend(connection)).statuses.slice(-1);
    await expect.poll(() => Date.now() - Date.parse(readyAt?.time ?? ''), { timeout: 20_000 }).toBeGreaterThan(9_000);
    expect((await fixture.backend(connection)).statuses.at(-1)?.status).toBe('ready');
    await redis.start();
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.at(-1)).toMatchObject({ termination_reason: 'swept' });
  });

  test('while it is emptied repeatedly, every backend still starts, stops, or is swept', async () => {
    const connections: ConnectResponse[] = [];
    const requests: Promise<Response>[] = [];
    for (let i = 0; i < 4; i += 1) {
      const spawn = i < 2 ? {} : { max_idle_seconds: 2 };
      const connecting = fixture.connect('serve', { key: `flushed-${i}`, spawn });
      await redis.flush();
      const connection = await connecting;
      connections.push(connection);
      // A request that waits for the backend keeps it from being swept.
      requests.push(fetch(connection.url));
    }
    for (const { status } of await Promise.all(requests)) expect(status).toBe(200);
    const [ended, swept] = [connections.slice(0, 2), connections.slice(2)];
    for (const connection of ended) {
      const terminating = fixture.terminate(connection);
      await redis.flush();
      await terminating;
    }
    await Promise.all(ended.map((connection) => fixture.statusesUntil(connection, 'terminated')));
    for (const connection of swept) {
      const statuses = await fixture.statusesUntil(connection, 'terminated');
      expect(statuses.at(-1)).toMatchObject({ termination_reason: 'swept' });
    }
  });

  test('an outage longer than a lease only delays connects, requests and stops', { timeout: 240_000 }, async () => {
    const held = await fixture.connectReady('serve', { key: 'held' });
    const idle = await fixture.connectReady('serve', { spawn: { max_idle_seconds: 5 } });
    await redis.ask('SET', 'from-before', '1');
    await redis.stop('SIGKILL');
    const stoppedAt = Date.now();
    const downMs = () => Date.now() - stoppedAt;
    // At the start of the outage, in its middle, and when every lease that was renewed before it has expired.
    for (const [i, fromMs] of [0, outageMs / 2, outageMs].entries()) {
      await expect.poll(downMs, { timeout: outageMs, interval: 100 }).toBeGreaterThanOrEqual(fromMs);
      const connection = await fixture.connect('serve', { key: `minute-${i}` });
      expect([connection.spawned, (await fetch(connection.url)).status]).toEqual([true, 200]);
      expect((await fetch(held.url)).status).toBe(200);
      const again = await fixture.connect('serve', { key: 'held' });
      expect([again.spawned, again.backend_id]).toEqual([false, held.backend_id]);
      await fixture.terminate(connection);
      const statuses = await fixture.statusesUntil(connection, 'terminated');
      expect(statuses.at(-1)).toMatchObject({ termination_reason: 'external' });
    }
    expect((await fixture.backend(idle)).statuses.at(-1)?.status).toBe('ready');
    await redis.start();
    expect(await redis.ask('EXISTS', 'from-before')).toBe('0');
    const swept = await fixture.statusesUntil(idle, 'terminated');
    expect(swept.at(-1)).toMatchObject({ termination_reason: 'swept' });
    const after = await fixture.connect('serve', { key: 'held' });
    expect([after.spawned, after.backend_id]).toEqual([false, held.backend_id]);
    expect((await fetch((await fixture.connectReady('serve')).url)).status).toBe(200);
  });
});
