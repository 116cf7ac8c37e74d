// Takes about 25 s
/** The main job, end to end: push, connect, traffic through the URL, one container per key. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { echo, openEcho } from '../kit/platform/echo.ts';
import { onAllEngines, Fixture } from './fixture.ts';

onAllEngines((setting) => {
  let fixture: Fixture;
  let digest: string;

  beforeAll(async () => {
    fixture = await Fixture.open(setting);
    digest = await fixture.push('serve');
    await fixture.pushSample();
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  test('a connect to a pushed image returns a URL that answers the first request', async () => {
    const connection = await fixture.connect('serve');
    expect(connection.spawned).toBe(true);
    const response = await fetch(connection.url);
    expect([response.status, await response.text()]).toEqual([
      200,
      expect.stringContaining('Hello from a test backend'),
    ]);
    const backend = await fixture.backend(connection);
    expect(backend.image_digest).toBe(digest);
    expect(backend.statuses.map(({ status }) => status)).toEqual([
      'scheduled',
      'loading',
      'starting',
      'waiting',
      'ready',
    ]);
  });

  test('a WebSocket echoes through the URL', async () => {
    const { url } = await fixture.connect('pad');
    const socket = await openEcho(url);
    for (const message of ['hello', 'wörld 🚢', 'x'.repeat(50_000)]) {
      expect(await echo(socket, message)).toBe(message);
    }
    socket.close();
    await once(socket, 'close');
  });

  test('two connects with one key share a container; another key has another container', async () => {
    const [first, second] = [
      await fixture.connect('pad', { key: 'room-1', user: 'ada' }),
      await fixture.connect('pad', { key: 'room-1', user: 'grace' }),
    ];
    expect([first.spawned, second.spawned, second.backend_id === first.backend_id]).toEqual([true, false, true]);
    expect(second.url).not.toBe(first.url);
    const other = await fixture.connect('pad', { key: 'room-2' });
    expect(other.spawned).toBe(true);
    expect(other.backend_id).not.toBe(first.backend_id);
  });

  test('50 parallel connects with one key start one container', async () => {
    const connections = await Promise.all(Array.from({ length: 50 }, () => fixture.connect('serve', { key: 'crowd' })));
    expect(new Set(connections.map(({ backend_id }) => backend_id)).size).toBe(1);
    expect(connections.filter(({ spawned }) => spawned)).toHaveLength(1);
    const answers = await Promise.all(connections.map(async ({ url }) => (await fetch(url)).status));
    expect(answers).toEqual(connections.map(() => 200));
    const path = `/v2/service/${fixture.platform.account}/serve/backends`;
    const { backends } = await fixture.get<{ backends: { key: string | null }[] }>(path);
    expect(backends.filter(({ key }) => key === 'crowd')).toHaveLength(1);
  });

  test('the container has its ID and key, and only the proxy sets verified headers', async () => {
    const connection = await fixture.connectReady('serve', { key: 'who', user: 'Zoë', auth: { role: 'ädmin' } });
    const response = await fetch(`${connection.url}cgi-bin/env`, {
      headers: {
        'X-Verified-Username': 'mallory',
        'x-verified-secret': 'guess',
        'X-VERIFIED-Admin': 'yes',
        'x_verified_user-data': '{}',
      },
    });
    const lines = (await response.text()).split('\n');
    const value = (name: string) => lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
    expect(value('SESSION_BACKEND_ID')).toBe(connection.backend_id);
    expect(value('SESSION_BACKEND_KEY')).toBe('who');
    expect(Number(value('SESSION_BACKEND_FENCING_TOKEN'))).toBeGreaterThan(0);
    expect(lines.join('\n')).not.toMatch(/mallory|guess|yes/);
    const whoami = await fixture.connect('pad', { user: 'Zoë', auth: { role: 'ädmin' } });
    const seen = await fetch(`${whoami.url}whoami`, {
      headers: { 'X-Verified-Username': 'mallory', 'x-verified-extra': 'x' },
    });
    expect(await seen.json()).toEqual({
      'x-verified-username': Buffer.from('Zoë').toString('latin1'),
      'x-verified-user-data': String.raw`{"role":"\u00e4dmin"}`,
      'x-verified-secret': '(set)',
    });
  });

  test('the status stream reports the whole start, and the ready page redirects to the session', async () => {
    const connection = await fixture.connect('serve');
    const statuses = await fixture.statusesUntil(connection, 'ready');
    expect(statuses.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'starting', 'waiting', 'ready']);
    const page = await fetch(connection.ready_url, { redirect: 'manual' });
    expect([page.status, page.headers.get('location')]).toEqual([303, connection.url]);
  });

  test('backends are not on any host interface, and cannot reach each other', async () => {
    const [one, other] = [await fixture.connectReady('serve'), await fixture.connectReady('serve')];
    const format = '{{json .NetworkSettings.Ports}} {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
    const inspected = await fixture.docker('inspect', '--format', format, await fixture.containerOf(one));
    const [ports = '', address = ''] = inspected.split(' ');
    expect(Object.values(JSON.parse(ports) as Record<string, unknown>).filter(Boolean)).toEqual([]);
    expect((await fetch(`http://${address}:8080/`)).status).toBe(200);
    const neighbour = await fixture.containerOf(other);
    const request = String.raw`printf 'GET / HTTP/1.0\r\n\r\n'`;
    const reach = async (target: string, seconds: number) =>
      await fixture.docker(
        'exec',
        neighbour,
        '/bin/sh',
        '-c',
        `${request} | nc -w ${seconds} ${target} 8080 || echo unreachable`,
      );
    expect(await reach('127.0.0.1', 30)).toContain('Hello from a test backend');
    expect(await reach(address, 2)).toBe('unreachable');
  });
});
