// Takes about 5 s
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ClientRequest } from 'node:http';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { RawData } from 'ws';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { collectStartupGarbage } from '../../core/heap/collect-start.mjs';
import { endedGraceMs } from './pools.ts';
import {
  connected,
  exchangeBytes,
  gathered,
  makeEnded,
  makeReady,
  openFixture,
  spawn,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  until,
  valuesOf,
} from '../testing/fixture.ts';
import type { Fixture, Program, Seen } from '../testing/fixture.ts';

const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';

function upgradeTo(token: string, protocol = 'echo', more: string[] = [], path = '/'): string {
  const lines = [
    `GET /${token}${path} HTTP/1.1`,
    'Host: a',
    'Connection: Upgrade',
    `Upgrade: ${protocol}`,
    ...more,
    '',
    '',
  ];
  return lines.join('\r\n');
}

/** Calls `use` with the next upgrade request to a backend. */
function onceAsked(use: (request: ClientRequest) => void): void {
  const onRequest = (message: unknown) => {
    const { request } = message as { request: ClientRequest };
    if (request.getHeader('upgrade') === undefined) return;
    unsubscribe('http.client.request.start', onRequest);
    use(request);
  };
  subscribe('http.client.request.start', onRequest);
}

async function startEcho(): Promise<Program & { sockets: WebSocketServer['clients']; seen: Seen[] }> {
  const program = await startProgram((_request, response) => void response.end());
  const server = new WebSocketServer({ server: program.server });
  const seen: Seen[] = [];
  server.on('connection', (socket, { method = '', url = '', rawHeaders }) => {
    seen.push({ method, url, rawHeaders });
    socket.on('message', (data: RawData, isBinary) => socket.send(data, { binary: isBinary }));
  });
  return { ...program, sockets: server.clients, seen, [Symbol.asyncDispose]: program[Symbol.asyncDispose] };
}

async function openSocket(fixture: Fixture, token: string, options = {}): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${fixture.port}/${token}/a//b?c`, options);
  await once(socket, 'open');
  return socket;
}

test('a WebSocket has verified headers, counts as open, and closes with its code', async () => {
  await using fixture = await openFixture();
  await using echo = await startEcho();
  const { token, backend } = await spawnReady(fixture, echo, { user: 'Zoë' });
  const headers = { 'X-Verified-Username': 'mallory', x_verified_secret: 'mallory', origin: 'https://evil.example' };
  const socket = await openSocket(fixture, token, { headers });
  expect(fixture.reports.at(-1)).toEqual({ [backend]: 1 });
  const [seen] = echo.seen;
  expect(seen?.url).toBe('/a//b?c');
  expect(valuesOf(seen ?? { rawHeaders: [] }, 'x-verified-username')).toEqual([Buffer.from('Zoë').toString('latin1')]);
  expect(valuesOf(seen ?? { rawHeaders: [] }, 'x-verified-secret')).toEqual([`secret of ${token}`]);
  expect(valuesOf(seen ?? { rawHeaders: [] }, 'origin')).toEqual(['https://evil.example']);
  expect(JSON.stringify(seen)).not.toContain('mallory');
  const big = Buffer.alloc(1_000_000, 7);
  for (const message of ['hello', big]) {
    socket.send(message);
    const [data] = (await once(socket, 'message')) as [Buffer];
    expect(data.equals(Buffer.from(message))).toBe(true);
  }
  for (const each of echo.sockets) each.close(4321, 'bye');
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([4321, 'bye']);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
});

test('a WebSocket is held until its backend is ready, with the bytes after its request', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => {
    socket.removeAllListeners('data');
    socket.write(switching);
    socket.on('data', (chunk) => socket.write(`echo ${chunk.toString()}`));
  });
  const { token, backend } = await spawn(fixture);
  const client = await connected(fixture.port);
  client.write(`${upgradeTo(token)}early `);
  await until(() => fixture.reports.at(-1)?.[backend] === 1);
  client.write('late');
  await makeReady(fixture, backend, program);
  let got = '';
  client.on('data', (chunk) => (got += chunk.toString()));
  await until(() => got.endsWith('late'));
  expect(got).toContain('HTTP/1.1 101 Switching Protocols\r\n');
  expect(got).toContain('echo early ');
  client.destroy();
  await until(() => program.sockets.size === 0);
});

test('a client that disconnects while its upgrade is held no longer counts as open', async () => {
  await using fixture = await openFixture();
  const { token, backend } = await spawn(fixture);
  for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
    const client = await connected(fixture.port);
    client.write(upgradeTo(token));
    await until(() => fixture.reports.at(-1)?.[backend] === 1);
    client[leave]();
    await until(() => fixture.reports.at(-1)?.[backend] === undefined);
    expect(fixture.reports.at(-1)).toEqual({});
    client.destroy();
  }
});

test.each(['end', 'destroy', 'resetAndDestroy'] as const)(
  'a client that disconnects (%s) before the answer ends the connection to the backend',
  async (leave) => {
    await using fixture = await openFixture();
    await using program = await startRawProgram(() => {});
    const { token, backend } = await spawnReady(fixture, program);
    const client = await connected(fixture.port);
    client.write(upgradeTo(token));
    await until(() => program.sockets.size === 1);
    client[leave]();
    await until(() => program.sockets.size === 0);
    await until(() => fixture.reports.at(-1)?.[backend] === undefined);
    expect(fixture.reports.at(-1)).toEqual({});
  },
);

test.each([
  ['the client', 'end'],
  ['the client', 'resetAndDestroy'],
  ['the backend', 'end'],
  ['the backend', 'resetAndDestroy'],
] as const)('%s disconnects (%s), and the other side is disconnected', async (who, how) => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => {
    socket.write(switching);
    if (who === 'the client') return;
    setTimeout(() => socket[how](), 20);
  });
  const { token, backend } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.on('error', () => {});
  client.write(upgradeTo(token));
  await once(client, 'data');
  if (who === 'the client') client[how]();
  else await once(client, 'close');
  await until(() => program.sockets.size === 0);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
  expect(fixture.reports.at(-1)).toEqual({});
});

test('an open WebSocket keeps nothing of its request in memory', async () => {
  await using fixture = await openFixture();
  await using echo = await startEcho();
  const { token } = await spawnReady(fixture, echo);
  const requests: WeakRef<object>[] = [];
  fixture.server.on('upgrade', (request) => requests.push(new WeakRef(request)));
  onceAsked((request) => requests.push(new WeakRef(request)));
  const socket = await openSocket(fixture, token);
  await until(() => {
    collectStartupGarbage();
    return requests.every((request) => request.deref() === undefined);
  });
  expect(requests).toHaveLength(2);
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.terminate();
});

test('the last bytes of a backend reach a slow client', async () => {
  await using fixture = await openFixture();
  const size = 48 * 1024 * 1024;
  await using program = await startRawProgram((socket) => {
    socket.write(switching);
    socket.end(Buffer.alloc(size, 'x'));
  });
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(upgradeTo(token));
  client.pause();
  await until(() => fixture.reports.length > 2);
  const got = await gathered(client);
  expect(got.length - got.indexOf('\r\n\r\n') - 4).toBe(size);
});

test('a backend that has finished sending still receives from the client', async () => {
  await using fixture = await openFixture();
  let received = '';
  await using program = await startRawProgram((socket) => {
    socket.allowHalfOpen = true;
    socket.removeAllListeners('data');
    socket.on('data', (chunk) => (received += chunk.toString()));
    socket.end(`${switching}bye`);
  });
  const { token, backend } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.allowHalfOpen = true;
  client.write(upgradeTo(token));
  expect(await gathered(client)).toMatch(/bye$/);
  client.end('still here');
  await until(() => received === 'still here');
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
  await until(() => program.sockets.size === 0);
});

test('a rejection of an upgrade by the backend is an ordinary answer of any size', async () => {
  await using fixture = await openFixture();
  const size = 4 * 1024 * 1024;
  await using program = await startProgram((_request, response) => {
    response.writeHead(403, { 'X-Why': 'no', 'x-berth-error': 'gone', 'Set-Cookie': ['a=1', 'b=2'] });
    response.end(Buffer.alloc(size, 'x'));
  });
  const { token, backend } = await spawnReady(fixture, program);
  const got = await exchangeBytes(fixture.port, upgradeTo(token, 'websocket'));
  expect(got).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
  expect(got).toContain('X-Why: no\r\n');
  expect(got).toContain('Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n');
  expect(got).not.toContain('x-berth-error');
  expect(got.match(/x{1000}/g)?.length).toBeGreaterThan(4000);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
});

test('errors of the proxy reach a client that asked for an upgrade', async () => {
  await using fixture = await openFixture();
  const failed = await spawn(fixture);
  await makeEnded(fixture, failed.backend);
  expect(await exchangeBytes(fixture.port, upgradeTo(failed.token))).toMatch(
    /^HTTP\/1\.1 410 [^]*x-berth-error: not-started/,
  );
  const gone = await spawnReady(fixture, { address: { host: '127.0.0.1', port: 9 } });
  await makeEnded(fixture, gone.backend);
  expect(await exchangeBytes(fixture.port, upgradeTo(gone.token))).toMatch(/^HTTP\/1\.1 410 [^]*x-berth-error: gone/);
  expect(await exchangeBytes(fixture.port, upgradeTo('short'))).toMatch(/^HTTP\/1\.1 404 /);
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as { port: number };
  closed.close();
  const refused = await spawnReady(fixture, { address: { host: '127.0.0.1', port } });
  expect(await exchangeBytes(fixture.port, upgradeTo(refused.token))).toMatch(/^HTTP\/1\.1 502 /);
});

test.each([
  ['HTTP/2 over plain text', 'h2c', ['HTTP2-Settings: AAMAAABkAAQAAP__', 'X-A: 1']],
  ['HTTP/2 among others', 'websocket, h2c', []],
  ['TLS', 'TLS/1.2', []],
  ['an upgrade with a body', 'websocket', ['Content-Length: 0005']],
])('%s is served as a plain request', async (_name, protocol, lines) => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const got = await exchangeBytes(fixture.port, `${upgradeTo(token, protocol, [...lines, 'Connection: close'])}hello`);
  expect(got).toMatch(/^HTTP\/1\.1 200 /);
  const seen = JSON.parse(got.slice(got.indexOf('{'), got.lastIndexOf('}') + 1)) as Seen;
  expect(valuesOf(seen, 'upgrade')).toEqual([]);
  expect(valuesOf(seen, 'http2-settings')).toEqual([]);
});

test('an upgrade that the proxy does not forward is answered with an error, even if the server accepts every upgrade', async () => {
  await using fixture = await openFixture();
  await using program = await startMirror();
  const { token } = await spawnReady(fixture, program);
  const server = createServer().on('upgrade', fixture.proxy.upgrade).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  expect(await exchangeBytes(port, upgradeTo(token, 'h2c'))).toMatch(/^HTTP\/1\.1 400 /);
  server.close();
});

test('upgraded connections are closed soon after their backend has ended', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using program = await startRawProgram((socket) => void socket.write(switching));
  const { token, backend } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(upgradeTo(token));
  await once(client, 'data');
  await makeEnded(fixture, backend);
  await until(async () => {
    await clock.advance(endedGraceMs / 10);
    return client.closed;
  });
  expect(client.closed).toBe(true);
});

test('a client that disconnects at the moment of the backend’s answer ends the connection to the backend', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => void socket.write(switching));
  const { token, backend } = await spawnReady(fixture, program);
  fixture.server.on('upgrade', (_request, client) => {
    onceAsked((request) => request.prependListener('upgrade', () => client.destroy()));
  });
  expect(await exchangeBytes(fixture.port, upgradeTo(token))).toBe('');
  await until(() => program.sockets.size === 0);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
});

test('a backend that disconnects at the moment of its answer ends the connection of the client', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => void socket.write(switching));
  const { token, backend } = await spawnReady(fixture, program);
  onceAsked((request) => request.prependListener('upgrade', (_answer, socket) => socket.destroy()));
  await exchangeBytes(fixture.port, upgradeTo(token));
  await until(() => program.sockets.size === 0);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
  expect(fixture.reports.some((open) => open[backend] === 1)).toBe(true);
});

test('the reason phrase of a 101 is the standard one', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => void socket.end(switching.replace('Switching', 'X\x01\x7f')));
  const { token } = await spawnReady(fixture, program);
  const got = await exchangeBytes(fixture.port, upgradeTo(token));
  expect(got).toMatch(/^HTTP\/1\.1 (?:101 Switching Protocols|502 Bad Gateway)\r\n/);
});
