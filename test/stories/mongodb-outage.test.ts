// Takes about 10 s
/** MongoDB stops: requests fail with an error, open connections continue, and no process needs a restart afterwards. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { leaseMs, renewEveryMs, softStopBeforeMs } from '../../model/key.ts';
import { api } from '../kit/platform/api-client.ts';
import { echo, openEcho } from '../kit/platform/echo.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { describeOnMongo } from '../kit/servers/mongodb-tests.ts';
import { stoppableMongo } from '../kit/servers/mongodb.ts';
import { Fixture } from './fixture.ts';

const [engine] = testEngines();
const shared = testDrivers().find((each) => each !== 'embedded');
const roles = ['registry', 'api', 'worker', 'proxy'] as const;
const soon = { interval: 200, timeout: 50_000 };
/** The shortest outage after which a worker may have stopped the holder of a key, less the time of a renewal that fails. */
const renewableMs = leaseMs - softStopBeforeMs - renewEveryMs - 5_000;

const open = async () =>
  engine && shared ? await stoppableMongo() : { missing: 'there is no Docker Engine, or no Redis, for stories' };

await describeOnMongo('A platform', open, (mongo) => {
  let fixture: Fixture;
  let restartMongo = async () => {};

  beforeAll(async () => {
    if (!engine || !shared) return;
    fixture = await Fixture.open({ engine, drivers: { ...shared, mongodbUrl: mongo.url }, only: roles });
    await fixture.push('serve');
    await fixture.pushSample();
  });
  afterAll(async () => {
    await restartMongo();
    await fixture?.[Symbol.asyncDispose]();
  });

  const statusesOf = async () =>
    await Promise.all(
      roles.map(async (role) => (await fetch(`${fixture.platform.announcedBy(role).operations_url}/readyz`)).status),
    );

  test('no process is ready, open connections continue, and requests succeed again afterwards', async () => {
    const pad = await fixture.connectReady('pad', { key: 'through' });
    const socket = await openEcho(pad.url);
    expect(await statusesOf()).toEqual([200, 200, 200, 200]);
    restartMongo = async () => await mongo.start();
    const stoppedAt = performance.now();
    await mongo.stop();
    const path = `/v2/service/${fixture.platform.account}/serve/connect`;
    // The proxy caches the address of a backend for a moment.
    const request = async () => {
      const { status, headers } = await fetch(pad.url);
      return [status, headers.get('x-berth-error')];
    };
    const answered = api(fixture.platform, path, { method: 'POST', body: '{}' });
    await expect.poll(statusesOf, soon).toEqual([503, 503, 503, 503]);
    await expect.poll(request, soon).toEqual([503, 'unavailable']);
    const rejected = await answered;
    expect([rejected.status, rejected.headers.has('retry-after')]).toEqual([503, true]);
    expect(await rejected.json()).toMatchObject({ error: { code: 'Unavailable' } });
    expect(await echo(socket)).toBe('still here');
    restartMongo = async () => {};
    await mongo.start();
    await expect.poll(statusesOf, soon).toEqual([200, 200, 200, 200]);
    const outageMs = performance.now() - stoppedAt;
    const again = await fixture.connect('pad', { key: 'through' });
    // A worker stops the holder of a key that it cannot renew in time: on a busy machine, MongoDB may start too late.
    if (outageMs < renewableMs) {
      expect([again.spawned, again.backend_id]).toEqual([false, pad.backend_id]);
      expect((await fetch(pad.url)).status).toBe(200);
    }
    expect((await fetch((await fixture.connectReady('serve')).url)).status).toBe(200);
    socket.close();
  });
});
