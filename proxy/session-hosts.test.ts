/** Sessions with their own hosts: `<label>.<session domain>`. */
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { routeMoved } from '../contract/messages.ts';
import type { Store } from '../core/store/store.ts';
import { assign, backends, newBackend } from '../model/backend.ts';
import { newBackendId } from '../model/ids.ts';
import { newRoute, routes } from '../model/route.ts';
import { labelOfToken } from '../model/session-host.ts';
import { backendPlan } from '../model/testing/backend-plan.ts';
import {
  connected,
  exchangeBytes,
  gathered,
  localNode,
  makeEnded,
  makeReady,
  openFixture,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  until,
  valuesOf,
} from './testing/fixture.ts';
import type { Fixture, Program, Seen } from './testing/fixture.ts';
import { newToken } from './testing/token.ts';

const sessionDomain = 'sessions.example';

function openHostFixture(): Promise<Fixture> {
  return openFixture({ sessionDomain });
}

function hostOf(token: string): string {
  return `${labelOfToken(token)}.${sessionDomain}`;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Sends a request to a host, with the path as it is. */
async function ask({ port }: Fixture, host: string, path = '/', headers: Record<string, string> = {}): Promise<Answer> {
  const request = send({ port, host: '127.0.0.1', path, headers: { ...headers, host }, agent: false });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once('response', resolve).once('error', reject).end();
  const response = await promise;
  return { status: response.statusCode ?? 0, headers: response.headers, body: await gathered(response) };
}

async function seenBy(
  fixture: Fixture,
  host: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Seen> {
  const { status, body } = await ask(fixture, host, path, headers);
  expect([path, status, body]).toEqual([path, 200, expect.stringMatching(/^\{/)]);
  return JSON.parse(body) as Seen;
}

test('every path of the host reaches the application byte for byte, also one that looks like a token', async () => {
  await using fixture = await openHostFixture();
  await using mirror = await startMirror();
  const [session, other] = [await spawnReady(fixture, mirror), await spawnReady(fixture, mirror)];
  for (const path of ['/', '/static/a.css?v=1', '/%2e%2e//b', '/?', `/${other.token}/`, `/${session.token}`]) {
    const seen = await seenBy(fixture, hostOf(session.token), path);
    expect(seen.url).toBe(path);
    expect(valuesOf(seen, 'x-verified-secret')).toEqual([`secret of ${session.token}`]);
    expect(valuesOf(seen, 'x-forwarded-prefix')).toEqual([]);
    expect(valuesOf(seen, 'x-forwarded-host')).toEqual([hostOf(session.token)]);
  }
});

test('the host may have any case, a port and a final dot', async () => {
  await using fixture = await openHostFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const host = hostOf(token);
  for (const spelled of [host.toUpperCase(), `${host}:8443`, `${host}.`, `${host}.:80`]) {
    const seen = await seenBy(fixture, spelled, '/a');
    expect(valuesOf(seen, 'host')).toEqual([spelled]);
  }
});

test('an unknown label is 404, and an invalid one costs no look-up', async () => {
  await using mirror = await startMirror();
  let reads = 0;
  await using fixture = await openHostFixture();
  const counted: Store = new Proxy(fixture.store, {
    get: (store, name) => {
      if (name === 'get') reads += 1;
      const value = Reflect.get(store, name) as unknown;
      return typeof value === 'function' ? (value.bind(store) as unknown) : value;
    },
  });
  await using proxied = await openFixture({ sessionDomain, store: counted });
  await spawnReady(fixture, mirror);
  for (const label of ['www', 'a'.repeat(51), `${'a'.repeat(51)}b`, 'a'.repeat(63), `x.${labelOfToken(newToken())}`]) {
    const { status, headers } = await ask(proxied, `${label}.${sessionDomain}`);
    expect([label, status, headers['x-berth-error']]).toEqual([label, 404, 'not-found']);
  }
  expect(reads).toBe(0);
  const { status, headers } = await ask(proxied, hostOf(newToken()));
  expect([status, headers['x-berth-error'], reads]).toEqual([404, 'not-found', 1]);
});

test('a backend that has ended is 410', async () => {
  await using fixture = await openHostFixture();
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  await makeEnded(fixture, backend);
  expect((await ask(fixture, hostOf(token))).status).toBe(410);
});

test('all other hosts serve sessions by path', async () => {
  await using fixture = await openHostFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  for (const host of [sessionDomain, '127.0.0.1', `www.${sessionDomain}`]) {
    const seen = await seenBy(fixture, host, `/${token}/a`);
    expect([seen.url, valuesOf(seen, 'x-forwarded-prefix')]).toEqual(['/a', [`/${token}`]]);
  }
});

test('without a session domain, a label is not a session', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  expect((await ask(fixture, hostOf(token))).status).toBe(404);
});

test('the host of an absolute target replaces the Host header, and a request with two hosts is refused', async () => {
  await using fixture = await openHostFixture();
  await using mirror = await startMirror();
  const [one, other] = [await spawnReady(fixture, mirror), await spawnReady(fixture, mirror)];
  const lines = (target: string, ...hosts: string[]) =>
    [`GET ${target} HTTP/1.1`, ...hosts.map((host) => `Host: ${host}`), 'Connection: close', '', ''].join('\r\n');
  const [first, second] = [hostOf(one.token), hostOf(other.token)];
  const answer = await exchangeBytes(fixture.port, lines(`http://${second}/`, first));
  expect(answer).toContain(`secret of ${other.token}`);
  expect(answer).not.toContain(first);
  expect(await exchangeBytes(fixture.port, lines('/', first, second))).toMatch(/^HTTP\/1\.1 400 /);
});

test('a WebSocket works', async () => {
  await using fixture = await openHostFixture();
  await using program = await startProgram((_request, response) => response.end());
  const echo = new WebSocketServer({ server: program.server });
  echo.on('connection', (socket, { url }) => {
    socket.send(`at ${url}`);
    socket.on('message', (data) => socket.send(data));
  });
  const { token } = await spawnReady(fixture, program);
  const socket = new WebSocket(`ws://127.0.0.1:${fixture.port}/socket.io/?a=b`, { headers: { host: hostOf(token) } });
  const messages: string[] = [];
  socket.on('message', (data: Buffer) => messages.push(data.toString()));
  socket.once('open', () => socket.send('hello'));
  await until(() => messages.length === 2);
  expect(messages).toEqual(['at /socket.io/?a=b', 'hello']);
  socket.terminate();
  echo.close();
});

test('redirects and cookies of the application stay unchanged, except for the domain', async () => {
  await using fixture = await openHostFixture();
  await using program = await startRawProgram((socket) => {
    socket.end(
      'HTTP/1.1 302 Found\r\nLocation: /login\r\nLink: </a.css>; rel=preload\r\nService-Worker-Allowed: /\r\n' +
        'Strict-Transport-Security: max-age=1\r\nSet-Cookie: __Host-id=1; Path=/; Secure\r\nSet-Cookie: wide=1; Domain=sessions.example; Path=/\r\n' +
        'Clear-Site-Data: "*", "cookies", "storage"\r\nContent-Length: 0\r\n\r\n',
    );
  });
  const { token } = await spawnReady(fixture, program);
  const { headers } = await ask(fixture, hostOf(token));
  expect(headers).toMatchObject({
    location: '/login',
    link: '</a.css>; rel=preload',
    'service-worker-allowed': '/',
    'strict-transport-security': 'max-age=1',
    'set-cookie': ['__Host-id=1; Path=/; Secure', 'wide=1; Path=/'],
    'referrer-policy': 'same-origin',
    'clear-site-data': '"storage"',
  });
});

test('in the path form, redirects, links and cookies stay below the path of the session', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket, head) => {
    const host = /^host: (.*)\r$/im.exec(head)?.[1];
    socket.end(
      `HTTP/1.1 302 Found\r\nLocation: http://${host}/login\r\nContent-Location: /a\r\nLink: </a.css>; rel=preload\r\n` +
        'Refresh: 0; url=/b\r\nService-Worker-Allowed: /\r\nSet-Cookie: id=1; Path=/\r\nReferrer-Policy: origin\r\n' +
        'Content-Length: 14\r\n\r\n<a href="/a">a',
    );
  });
  const { token } = await spawnReady(fixture, program);
  const { headers, body } = await ask(fixture, '127.0.0.1:7102', `/${token}/`);
  expect(headers).toMatchObject({
    location: `/${token}/login`,
    'content-location': `/${token}/a`,
    link: `</${token}/a.css>; rel=preload`,
    refresh: `0; url=/${token}/b`,
    'set-cookie': [`id=1; Path=/${token}/`],
    'referrer-policy': 'origin',
  });
  expect(headers).not.toHaveProperty('service-worker-allowed');
  expect(body).toBe('<a href="/a">a');
});

test('behind a load balancer, the forwarded host counts as the host of the session, too', async () => {
  await using fixture = await openFixture({ behindLoadBalancer: true });
  await using program = await startRawProgram((socket) => {
    socket.end('HTTP/1.1 302 Found\r\nLocation: https://public.example/login\r\nContent-Length: 0\r\n\r\n');
  });
  const { token } = await spawnReady(fixture, program);
  const forwarded = { 'x-forwarded-host': 'public.example' };
  expect((await ask(fixture, 'inner.example', `/${token}/`, forwarded)).headers.location).toBe(`/${token}/login`);
});

test('the URL of another session is not sent as a referrer', async () => {
  await using fixture = await openHostFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const refererOf = async (referer: string) => {
    return valuesOf(await seenBy(fixture, hostOf(token), '/', { referer }), 'referer');
  };
  const own = `http://${hostOf(token)}/a`;
  expect(await refererOf(own)).toEqual([own]);
  expect(await refererOf(`http://${hostOf(newToken())}/a`)).toEqual([]);
  expect(await refererOf(`http://${hostOf(newToken())}:7102`)).toEqual([]);
  expect(await refererOf(`http://${sessionDomain}/${newToken()}/a`)).toEqual([`http://${sessionDomain}/`]);
  expect(await refererOf('https://elsewhere.example/a')).toEqual(['https://elsewhere.example/a']);
});

/** Inserts a backend with a key, and moves the route of the key's token to it, as the API does. */
async function hold(fixture: Fixture, token: string, fencingToken: number): Promise<string> {
  const id = newBackendId();
  const holder = newBackend(backendPlan({ id, key: 'room', fencingToken }), new Date());
  await fixture.store.insert(backends, assign(holder, localNode));
  const route = newRoute(token, { backend: id, held: { service: 'acme/draw', key: 'room', fencingToken } });
  if (fencingToken === 1) await fixture.store.insert(routes, route);
  else await fixture.store.update(routes, route.id, () => route);
  return id;
}

async function startNamed(name: string): Promise<Program> {
  return await startProgram((_request, response) => response.end(name));
}

test('the host of a key leads to its next holder at once, with the message of the API and without', async () => {
  await using fixture = await openHostFixture();
  await using first = await startNamed('first');
  await using second = await startNamed('second');
  await using third = await startNamed('third');
  const token = newToken();
  const answer = async () => (await ask(fixture, hostOf(token))).body;
  const holder = await hold(fixture, token, 1);
  await makeReady(fixture, holder, first);
  expect(await answer()).toBe('first');
  // The first holder is still stopping.
  const next = await hold(fixture, token, 2);
  await makeReady(fixture, next, second);
  await fixture.bus.publish(routeMoved, { route: newRoute(token, { backend: next }).id });
  expect(await answer()).toBe('second');
  // No message about the route.
  await makeEnded(fixture, next);
  await makeReady(fixture, await hold(fixture, token, 3), third);
  expect(await answer()).toBe('third');
});

test('a request that waits for a holder that ends is forwarded to the next holder', async () => {
  await using fixture = await openHostFixture();
  await using second = await startNamed('second');
  const token = newToken();
  const holder = await hold(fixture, token, 1);
  const waiting = ask(fixture, hostOf(token));
  await until(() => fixture.reports.some((open) => holder in open));
  await makeReady(fixture, await hold(fixture, token, 2), second);
  await makeEnded(fixture, holder);
  expect((await waiting).body).toBe('second');
});

test('a stream of the next holder does not count as an open connection of the holder that has ended', async () => {
  await using fixture = await openHostFixture();
  await using second = await startProgram((_request, response) => void response.write('begun'));
  const token = newToken();
  const holder = await hold(fixture, token, 1);
  const client = await connected(fixture.port);
  client.write(`GET / HTTP/1.1\r\nHost: ${hostOf(token)}\r\n\r\n`);
  await until(() => fixture.reports.some((open) => holder in open));
  const next = await hold(fixture, token, 2);
  await makeReady(fixture, next, second);
  await makeEnded(fixture, holder);
  await once(client, 'data');
  expect(await fixture.metrics.metrics()).toMatch(/^berth_proxy_open_connections 1$/m);
  await until(() => Object.keys(fixture.reports.at(-1) ?? {}).join() === next);
  client.destroy();
});
