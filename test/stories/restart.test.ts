// Takes about 50 s
/** The platform stops and restarts: sessions continue. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BerthClient } from '../../client/index.ts';
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

  test('killed with -9 while backends run: it adopts them, and an open page still works', async () => {
    const kept = await fixture.connectReady('pad', { key: 'kept' });
    const leaving = await fixture.connectReady('serve', { spawn: { max_idle_seconds: 3 } });
    expect(await echoOf(kept.url)).toBe('still here');
    await fixture.platform.kill();
    await expect(fetch(kept.url)).rejects.toThrow('fetch failed');
    await fixture.platform.restart();
    expect(await echoOf(kept.url)).toBe('still here');
    const again = await fixture.connect('pad', { key: 'kept' });
    expect([again.spawned, again.backend_id]).toEqual([false, kept.backend_id]);
    const { statuses } = await fixture.backend(kept);
    expect(statuses.at(-1)?.status).toBe('ready');
    // Adopted backends can be swept and stopped.
    await fixture.statusesUntil(leaving, 'terminated');
    await fixture.terminate(kept);
    const last = (await fixture.statusesUntil(kept, 'terminated')).at(-1);
    expect(last).toMatchObject({ termination_reason: 'external', exit_error: false });
  });

  test('killed with -9 while backends start: every backend still becomes ready', async () => {
    const connections = await Promise.all(
      Array.from({ length: 6 }, (_, i) => fixture.connect('serve', { key: `start-${i}` })),
    );
    await fixture.platform.kill();
    await fixture.platform.restart();
    for (const connection of connections) {
      expect((await fetch(connection.url)).status).toBe(200);
      expect((await fixture.backend(connection)).statuses.at(-1)?.status).toBe('ready');
    }
    const path = `/v2/account/${fixture.platform.account}/backends`;
    const { running_backends: running } = await fixture.get<{ running_backends: unknown[] }>(path);
    const containers = await fixture.docker('ps', '--quiet', '--filter', `label=berth.node=${fixture.platform.node}`);
    expect(containers.split('\n')).toHaveLength(running.length);
  });

  test('a backend that ended while the platform was down is reported as ended', async () => {
    const connection = await fixture.connectReady('serve');
    const container = await fixture.containerOf(connection);
    await fixture.platform.kill();
    await fixture.docker('kill', container);
    await fixture.platform.restart();
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.at(-1)).toMatchObject({ termination_kind: null, exit_error: true });
    expect((await fetch(connection.url)).status).toBe(410);
  });

  test('stopped in order: it restarts with all backends and keys, and clients of streams connect again', async () => {
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
    'a second platform on the same data exits, and names the process that holds it',
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
