// Takes about 100 s
/**
 * A platform is frozen for longer than any lease: afterwards its sessions still run. If other processes share the store, sessions
 * with a key do not: their keys could have been assigned again, so their containers have ended themselves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { echo, openEcho } from '../kit/platform/echo.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { nodeLeaseMs } from '../../model/node.ts';
import { Fixture } from './fixture.ts';

/** Longer than the leases of keys and nodes by two heartbeats, so that they have expired, whenever they were last renewed. */
const freezeMs = nodeLeaseMs + 10_000;

/** Long enough for two passes of every periodic check of leases. */
const passesMs = 11_000;

/** What a session echoes on a new WebSocket, which stays open. */
async function echoOf({ url }: ConnectResponse): Promise<string> {
  return await echo(await openEcho(url));
}

const [engine] = testEngines();
const allDrivers = engine ? testDrivers() : [];

// On all drivers at the same time, to save time.
describe.skipIf(!engine)(`a platform that was frozen for ${freezeMs / 1000} seconds`, () => {
  let fixtures: Fixture[] = [];

  beforeAll(async () => {
    if (!engine) return;
    fixtures = await Promise.all(allDrivers.map((drivers) => Fixture.open({ engine, drivers })));
    for (const fixture of fixtures) await fixture.pushSample();
  }, 240_000);
  afterAll(async () => {
    await Promise.all(fixtures.map((fixture) => fixture[Symbol.asyncDispose]()));
  });

  test(
    'ends no session that still holds its key, and a connect right afterwards returns a session',
    { timeout: 240_000 },
    async () => {
      const acts = fixtures.map(async (fixture, i) => {
        const keyless = [await fixture.connectReady('pad'), await fixture.connectReady('pad')];
        const keyed = await fixture.connectReady('pad', { key: 'room' });
        for (const session of [...keyless, keyed]) expect(await echoOf(session)).toBe('still here');
        const thaw = await fixture.platform.freeze();
        await delay(freezeMs);
        thaw();
        const again = await fixture.connect('pad', { key: 'room' });
        const isShared = allDrivers[i] !== 'embedded';
        expect([again.spawned, again.backend_id === keyed.backend_id]).toEqual([isShared, !isShared]);
        await fixture.statusesUntil(again, 'ready');
        await delay(passesMs);
        for (const session of [...keyless, again]) {
          expect((await fixture.backend(session)).statuses.at(-1)).toMatchObject({ status: 'ready' });
          // On a new socket, because the application closes sockets whose clients have not answered pings.
          expect(await echoOf(session)).toBe('still here');
        }
        if (!isShared) return;
        const reason = expect.stringMatching(/^(?:keyexpired|lost)$/) as string;
        expect((await fixture.backend(keyed)).statuses.at(-1)).toMatchObject({ termination_reason: reason });
      });
      await Promise.all(acts);
    },
  );
});
