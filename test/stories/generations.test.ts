// Takes about 20 s
/** Spawns through the earliest form of the API, up to the container; settings and deletion of services. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { api, eventStream } from '../kit/platform/api-client.ts';
import { onAllDrivers, Fixture } from './fixture.ts';

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- the JSON of a response
  readonly body: any;
}

onAllDrivers((setting) => {
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await Fixture.open(setting, { BERTH_STOP_GRACE_SECONDS: '3' });
    await fixture.push('serve');
    await fixture.push('stubborn');
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  async function post(path: string, body?: object): Promise<Answer> {
    const answer = await api(fixture.platform, path, {
      method: 'POST',
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  }

  const service = (name: string) => `/user/${fixture.platform.account}/service/${name}`;
  const v2Service = (name: string) => `/v2/service/${fixture.platform.account}/${name}`;

  async function statesUntil(name: string, last: string): Promise<string[]> {
    const states: string[] = [];
    const path = `/v1/backend/${name}/status/stream`;
    for await (const { data } of eventStream(fixture.platform, path, { signal: AbortSignal.timeout(90_000) })) {
      const { state } = JSON.parse(data) as { state: string };
      states.push(state);
      if (state === last) break;
    }
    return states;
  }

  /** The variables of a container, as its program sees them. */
  async function variablesAt(url: string, headers: Record<string, string> = {}): Promise<Record<string, string>> {
    const answer = await fetch(`${url}cgi-bin/env`, { headers });
    expect(answer.status).toBe(200);
    const lines = (await answer.text()).split('\n').filter((line) => line.includes('='));
    return Object.fromEntries(lines.map((line) => [line.split('=')[0] ?? '', line.slice(line.indexOf('=') + 1)]));
  }

  test('a spawn of the earliest form has its port, variables, bearer token, log and termination', async () => {
    const { status, body: spawned } = await post(`${service('serve')}/spawn`, {
      port: 3000,
      require_bearer_token: true,
      env: { COLOUR: 'red', PORT: '1', PLATFORM_NAME: 'forged', PLATFORM_URL: 'forged' },
    });
    expect(status).toBe(200);
    expect(await statesUntil(spawned.name, 'Ready')).toEqual(['Loading', 'Starting', 'Ready']);
    const ready = await fetch(`${fixture.platform.apiUrl}/backend/${spawned.name}/ready`, { redirect: 'manual' });
    expect([ready.status, ready.headers.get('location')]).toEqual([303, spawned.url]);

    expect((await fetch(spawned.url)).status).toBe(401);
    const seen = await variablesAt(spawned.url, { authorization: `Bearer ${spawned.bearer_token}` });
    expect(seen).toMatchObject({
      COLOUR: 'red',
      PORT: '3000',
      PLATFORM_NAME: spawned.name,
      PLATFORM_URL: spawned.url,
      PLATFORM_SERVICE: 'serve',
      SESSION_BACKEND_ID: spawned.name,
    });
    expect(seen).not.toHaveProperty('HTTP_AUTHORIZATION');

    expect((await post(`/backend/${spawned.name}/terminate`)).body).toEqual({ status: 'ok' });
    expect((await statesUntil(spawned.name, 'Terminated')).at(-1)).toBe('Terminated');
    const lines: string[] = [];
    for await (const { data } of eventStream(fixture.platform, `/v1/backend/${spawned.name}/logs`)) lines.push(data);
    expect(lines).toEqual(expect.arrayContaining(['serving', 'bye']));
  });

  test('a spawn token serves clients without an access token', async () => {
    const { token } = (await post(`${service('serve')}/token`, { grace_period_seconds: 60 })).body;
    const answer = await fetch(`${fixture.platform.apiUrl}/token/${token}/spawn`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ env: { PLATFORM_ROOM: 'blue' } }),
    });
    const { url } = (await answer.json()) as { url: string };
    expect(await variablesAt(url)).toMatchObject({ PLATFORM_ROOM: 'blue', PLATFORM_SERVICE: 'serve' });
  });

  test('settings and secrets of a service reach its containers', async () => {
    const settings = { port: 3001, env: { MODE: 'a' }, secrets: { PASSWORD: 'hunter2' } };
    expect((await post(`${v2Service('serve')}/settings`, settings)).status).toBe(200);
    const connection = await fixture.connectReady('serve');
    expect(await variablesAt(connection.url)).toMatchObject({ PORT: '3001', MODE: 'a', PASSWORD: 'hunter2' });
    await post(`${v2Service('serve')}/settings`, { port: null, env: { MODE: null }, secrets: { PASSWORD: null } });
  });

  test('when a service is deleted, connects are rejected at once, its backends stop, and its images are deleted', async () => {
    const { account, token } = fixture.platform;
    const running = await fixture.connectReady('stubborn', { key: 'kept' });
    expect((await post(`${v2Service('stubborn')}/delete`)).body).toEqual({ status: 'ok' });
    expect((await post(`${v2Service('stubborn')}/connect`, { key: 'kept' })).status).toBe(404);
    const basic = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
    const manifest = `http://${fixture.platform.registry}/v2/${account}/stubborn/manifests/latest`;
    expect((await fetch(manifest, { headers: { authorization: basic } })).status).toBe(404);
    // The backend ignores SIGTERM, so the soft stop becomes a hard stop.
    const statuses = (await fixture.statusesUntil(running, 'terminated')).map((each) => each.status);
    expect(statuses).toContain('terminating');
    expect((await fixture.backend(running)).statuses.at(-1)).toMatchObject({ termination_reason: 'external' });

    expect((await post(`/v2/account/${account}/service`, { name: 'stubborn' })).body).toEqual({ status: 'ok' });
    expect((await post(`${v2Service('stubborn')}/connect`)).body.error.code).toBe('NoImage');
    await fixture.push('stubborn', 'again');
    expect((await fixture.connectReady('stubborn', { key: 'kept' })).spawned).toBe(true);
  });
});
