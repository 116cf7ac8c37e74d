// Takes about 100 s
/**
 * A platform stands still for longer than any lease, and goes on: its sessions are still there. Where other processes share the
 * store, those with a key are not: their keys could have been given away, so their containers have ended by themselves.
 */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ConnectResponse } from '../../contract/connect.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { nodeLeaseMs } from '../../model/node.ts';
import { Fixture } from './fixture.ts';

/** Longer than the leases of keys and nodes, by two heartbeats: the store's time is past them however they were renewed before. */
const freezeMs = nodeLeaseMs + 10_000;

/** Two passes of everything that looks at leases now and then. */
const passesMs = 11_000;

/** The answer of a session over a WebSocket of its own; it is left open. */
async function echo(connection: ConnectResponse): Promise<string> {
  const socket = new WebSocket(`${connection.url.replace(/^http/, 'ws')}echo`);
  await once(socket, 'open');
  socket.send('still here');
  const [message] = (await once(socket, 'message')) as [Buffer];
  return message.toString();
}

const [engine] = testEngines();
const allDrivers = engine ? testDrivers() : [];

// On all drivers at the same time: it takes as long as one.
describe.skipIf(!engine)(`a platform that stood still for ${freezeMs / 1000} seconds`, () => {
  let fixtures: Fixture[] = [];

  beforeAll(async () => {
    if (!engine) return;
    fixtures = await Promise.all(allDrivers.map((drivers) => Fixture.open({ engine, drivers })));
    for (const fixture of fixtures) await fixture.pushSample();
  });
  afterAll(async () => {
    await Promise.all(fixtures.map((fixture) => fixture[Symbol.asyncDispose]()));
  });

  test(
    'ends no session whose key is still its own, and a connect right after it gets one',
    { timeout: 240_000 },
    async () => {
      const acts = fixtures.map(async (fixture, i) => {
        const keyless = [await fixture.connectReady('pad'), await fixture.connectReady('pad')];
        const keyed = await fixture.connectReady('pad', { key: 'room' });
        for (const session of [...keyless, keyed]) expect(await echo(session)).toBe('still here');
        const thaw = await fixture.platform.freeze();
        await delay(freezeMs);
        thaw();
        const again = await fixture.connect('pad', { key: 'room' });
        const isShared = allDrivers[i] !== 'embedded';
        expect([again.spawned, again.backend_id === keyed.backend_id]).toEqual([isShared, !isShared]);
        await delay(passesMs);
        for (const session of [...keyless, again]) {
          expect((await fixture.backend(session)).statuses.at(-1)).toMatchObject({ status: 'ready' });
          // On a new socket: the application ends those whose client, behind the proxy, has not answered its pings.
          expect(await echo(session)).toBe('still here');
        }
        if (!isShared) return;
        const reason = expect.stringMatching(/^(?:keyexpired|lost)$/) as string;
        expect((await fixture.backend(keyed)).statuses.at(-1)).toMatchObject({ termination_reason: reason });
      });
      await Promise.all(acts);
    },
  );
});
