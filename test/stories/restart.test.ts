// Takes about 50 s
/** The platform stops and restarts: sessions continue. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BerthClient } from '../../client/index.ts';
import type { ConnectResponse } from '../../contract/connect.ts';
import { echo, openEcho } from '../kit/platform/echo.ts';
import { onAllDrivers, Fixture, onlyIf } from './fixture.ts';

onAllDrivers((setting) => {
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await Fixture.open(setting, { BERTH_STOP_GRACE_SECONDS: '10' });
    await fixture.push('serve');
    await fixture.pushSample();
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  async function echoOf(url: string): Promise<string> {
    const socket = await openEcho(url);
    const message = await echo(socket);
    socket.close();
    return message;
  }

  describe('killed with -9 while backends run, start and end', () => {
    let kept: ConnectResponse;
    let leaving: ConnectResponse;
    let ended: ConnectResponse;
    let starting: ConnectResponse[];
    /** What a client of `kept` receives before the kill, and while the platform is down. */
    let answers: string[];

    // One kill for all tests, because restarting the processes takes longer than the rest of the story.
    beforeAll(async () => {
      [kept, leaving, ended] = await Promise.all([
        fixture.connectReady('pad', { key: 'kept' }),
        fixture.connectReady('serve', { spawn: { max_idle_seconds: 5 } }),
        fixture.connectReady('serve'),
      ]);
      const before = await echoOf(kept.url);
      const container = await fixture.containerOf(ended);
      starting = await Promise.all(
        Array.from({ length: 4 }, (_, i) => fixture.connect('serve', { key: `start-${i}` })),
      );
      await fixture.platform.kill();
      const down = await fetch(kept.url).then(
        ({ status }) => String(status),
        (error: Error) => error.message,
      );
      answers = [before, down];
      await fixture.docker('kill', container);
      await fixture.platform.restart();
    });

    test('the platform adopts running backends, and an open page still works', async () => {
      expect(answers).toEqual(['still here', 'fetch failed']);
      expect(await echoOf(kept.url)).toBe('still here');
      const again = await fixture.connect('pad', { key: 'kept' });
      expect([again.spawned, again.backend_id]).toEqual([false, kept.backend_id]);
      const { statuses } = await fixture.backend(kept);
      expect(statuses.at(-1)?.status).toBe('ready');
    });

    test('every starting backend still becomes ready', async () => {
      for (const connection of starting) {
        expect((await fetch(connection.url)).status).toBe(200);
        expect((await fixture.backend(connection)).statuses.at(-1)?.status).toBe('ready');
      }
    });

    test('a backend that ended while the platform was down is reported as ended', async () => {
      const statuses = await fixture.statusesUntil(ended, 'terminated');
      expect(statuses.at(-1)).toMatchObject({ termination_kind: null, exit_error: true });
      expect((await fetch(ended.url)).status).toBe(410);
    });

    test('adopted backends can be swept and stopped, and no other container is left', async () => {
      await fixture.statusesUntil(leaving, 'terminated');
      await fixture.terminate(kept);
      const last = (await fixture.statusesUntil(kept, 'terminated')).at(-1);
      expect(last).toMatchObject({ termination_reason: 'external', exit_error: false });
      const path = `/v2/account/${fixture.platform.account}/backends`;
      const { running_backends: running } = await fixture.get<{ running_backends: unknown[] }>(path);
      const filter = `label=berth.node=${fixture.platform.node}`;
      const containers = await fixture.docker('ps', '--quiet', '--filter', filter);
      expect(containers.split('\n')).toHaveLength(running.length);
    });
  });

  test('after an orderly stop, a restart keeps all backends and keys, and clients of streams reconnect', async () => {
    const connection = await fixture.connectReady('serve', { key: 'through' });
    const { apiUrl: url, token } = fixture.platform;
    const followed: string[] = [];
    const following = (async () => {
      const statuses = new BerthClient({ url, token, retries: 1_000 }).statuses(connection.backend_id);
      for await (const { status } of statuses) followed.push(status);
    })();
    await expect.poll(() => followed).toContain('ready');
    expect(await fixture.platform.stop()).toBe(0);
    await fixture.platform.restart();
    expect((await fetch(connection.url)).status).toBe(200);
    expect((await fixture.connect('serve', { key: 'through' })).spawned).toBe(false);
    await fixture.terminate(connection);
    await following;
    expect(followed).toEqual((await fixture.backend(connection)).statuses.map(({ status }) => status));
  });

  test.for(onlyIf(setting.drivers === 'embedded'))(
    'a second platform on the same data folder exits, and names the process that uses the folder',
    () => {
      const berth = join(import.meta.dirname, '../../main/berth.ts');
      const env = {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        DOCKER_HOST: setting.engine.host,
        BERTH_DATA_FOLDER: fixture.platform.dataFolder,
      };
      const second = spawnSync(process.execPath, [berth, 'serve'], { env, encoding: 'utf8' });
      expect([second.status, second.stderr]).toEqual([1, expect.stringContaining(`process ${fixture.platform.pid}`)]);
    },
  );
});
