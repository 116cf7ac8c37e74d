/** MongoDB goes away: everybody is told so, open connections go on, and nobody has to restart anything when it is back. */
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { api } from '../kit/client.ts';
import { testEngines } from '../kit/engines.ts';
import { testGrounds } from '../kit/grounds.ts';
import { stoppableMongo } from '../kit/mongodb.ts';
import type { StoppableMongo } from '../kit/mongodb.ts';
import { Stage } from './stage.ts';

const [engine] = testEngines();
const shared = testGrounds().find((each) => each !== 'embedded');
const roles = ['registry', 'api', 'worker', 'proxy'] as const;
const soon = { interval: 200, timeout: 50_000 };

describe.skipIf(!engine || !shared)('a MongoDB of the platform’s own', () => {
  let mongo: StoppableMongo;
  let stage: Stage;

  beforeAll(async () => {
    const opened = await stoppableMongo();
    if (!engine || !shared || 'missing' in opened) return;
    mongo = opened;
    stage = await Stage.open({ engine, ground: { ...shared, mongodbUrl: mongo.url } });
    await stage.push('serve');
    await stage.pushSample();
  });
  afterAll(async () => {
    await mongo?.start().catch(() => {});
    await stage?.[Symbol.asyncDispose]();
    await mongo?.[Symbol.asyncDispose]();
  });

  const statusesOf = async () =>
    await Promise.all(
      roles.map(async (role) => (await fetch(`${stage.platform.announcedBy(role).operations_url}/readyz`)).status),
    );

  test('every process is red and answers with an error; open connections go on; all is as before when it is back', async ({
    skip,
  }) => {
    if (!mongo) return skip('there is no MongoDB that could be stopped');
    const pad = await stage.connectReady('pad', { key: 'through' });
    const socket = new WebSocket(`${pad.url.replace(/^http/, 'ws')}echo`);
    await once(socket, 'open');
    expect(await statusesOf()).toEqual([200, 200, 200, 200]);
    await mongo.stop();
    await expect.poll(statusesOf, soon).toEqual([503, 503, 503, 503]);
    const path = `/v2/service/${stage.platform.account}/serve/connect`;
    const refused = await api(stage.platform, path, { method: 'POST', body: '{}' });
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([503, true]);
    expect(await refused.json()).toMatchObject({ error: { code: 'Unavailable' } });
    const page = await fetch(pad.url);
    expect([page.status, page.headers.get('x-berth-error')]).toEqual([503, 'unavailable']);
    socket.send('still here');
    const [message] = (await once(socket, 'message')) as [Buffer];
    expect(message.toString()).toBe('still here');
    await mongo.start();
    await expect.poll(statusesOf, soon).toEqual([200, 200, 200, 200]);
    const again = await stage.connect('pad', { key: 'through' });
    expect([again.spawned, again.backend_id]).toEqual([false, pad.backend_id]);
    expect((await fetch(pad.url)).status).toBe(200);
    expect((await fetch((await stage.connectReady('serve')).url)).status).toBe(200);
    socket.close();
  }, 120_000);
});
