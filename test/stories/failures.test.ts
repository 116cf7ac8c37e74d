// Takes about 20 s
/** Backends that do not start, or that fail. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { onAllEngines, Fixture } from './fixture.ts';

/** On a busy machine, a container that listens at once does so within this time. */
const startTimeoutSeconds = 15;

onAllEngines((setting) => {
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await Fixture.open(setting, {
      BERTH_START_TIMEOUT_SECONDS: String(startTimeoutSeconds),
      BERTH_STOP_GRACE_SECONDS: '2',
    });
    for (const behaviour of ['serve', 'deaf', 'failing', 'greedy'] as const) await fixture.push(behaviour);
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  test.concurrent('an image that never listens ends with "startuptimeout", and waiting requests are answered', async () => {
    const connection = await fixture.connect('deaf');
    const waiting = fetch(connection.url);
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.at(-1)).toMatchObject({ termination_reason: 'startuptimeout' });
    expect(statuses.map(({ status }) => status)).not.toContain('ready');
    const answer = await waiting;
    expect([answer.status, answer.headers.get('x-berth-error')]).toEqual([410, 'not-started']);
    const page = await (await fetch(connection.ready_url)).text();
    expect(page).toContain(
      `did not become ready within ${startTimeoutSeconds} seconds: it listens on no TCP port, expected 8080`,
    );
    expect(page).not.toContain('code 137');
  });

  test.concurrent('an image that exits with 1 ends its backend, and the ready page reports it', async () => {
    const connection = await fixture.connect('failing');
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.at(-1)).toMatchObject({ termination_kind: null, termination_reason: null, exit_error: true });
    const { statuses: detailed } = await fixture.backend(connection);
    expect(detailed.at(-1)).toMatchObject({ exit_code: 1 });
    const page = await fetch(connection.ready_url);
    expect([page.status, await page.text()]).toEqual([410, expect.stringContaining('code 1')]);
  });

  test.concurrent('a connect to an image that was never pushed is rejected; a backend whose image is missing in the registry ends with the reason', async () => {
    await expect(fixture.connect('serve', { spawn: { tag: 'nope' } })).rejects.toThrow('ImageNotFound');
    await expect(fixture.connect('nothing')).rejects.toThrow('ServiceNotFound');
    const { registry, account, token } = fixture.platform;
    // A variant, so that no other story has left this image on the engine.
    const variant = randomUUID();
    const digest = await fixture.pushOnly('stubborn', variant);
    const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
    const ask = async (method: string, path: string) =>
      await fetch(`http://${registry}/v2/${account}/stubborn/${path}`, { method, headers: { authorization } });
    const manifest = (await (await ask('GET', `manifests/${digest}`)).json()) as { config: { digest: string } };
    expect((await ask('DELETE', `blobs/${manifest.config.digest}`)).status).toBe(202);
    const connection = await fixture.connect('stubborn');
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.at(-1)).toMatchObject({ termination_kind: null, termination_reason: null, exit_error: false });
    const page = await fetch(connection.ready_url);
    expect([page.status, await page.text()]).toEqual([410, expect.stringMatching(/image/i)]);
  });

  test.concurrent('a backend that exceeds its memory limit is ended', async () => {
    const spawn = { executable: { resource_limits: { memory_limit_bytes: 32 * 1024 * 1024 } } };
    const connection = await fixture.connectReady('greedy', { spawn });
    // It may be killed before it has answered.
    await fetch(`${connection.url}cgi-bin/allocate`).catch(() => {});
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.at(-1)).toMatchObject({ exit_error: true });
    const { statuses: detailed } = await fixture.backend(connection);
    expect(detailed.at(-1)?.exit_code).toBe(137);
  });
});
