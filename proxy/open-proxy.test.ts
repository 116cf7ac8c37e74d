import { once } from 'node:events';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import {
  connected,
  gathered,
  makeReady,
  openFixture,
  spawn,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  until,
  valuesOf,
} from './testing/fixture.ts';
import type { Seen } from './testing/fixture.ts';

test('a request reaches its backend, and the answer reaches the client', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror, { user: 'ada' });
  const answer = await fetch(`${fixture.url}/${token}/a/b?c=d`, { method: 'POST', body: 'hello' });
  expect(answer.status).toBe(200);
  const seen = (await answer.json()) as Seen;
  expect(seen).toMatchObject({ method: 'POST', url: '/a/b?c=d' });
  expect(valuesOf(seen, 'x-verified-username')).toEqual(['ada']);
  expect(valuesOf(seen, 'x-verified-secret')).toEqual([`secret of ${token}`]);
});

test('a request is held until its backend is ready', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  const answer = fetch(`${fixture.url}/${token}/`);
  await makeReady(fixture, backend, mirror);
  expect((await answer).status).toBe(200);
});

test('a WebSocket works in both directions', async () => {
  await using fixture = await openFixture();
  await using program = await startProgram((_request, response) => void response.end());
  const server = new WebSocketServer({ server: program.server });
  server.on('connection', (socket) =>
    socket.on('message', (data: Buffer) => socket.send(`you said ${data.toString()}`)),
  );
  const { token } = await spawnReady(fixture, program);
  const socket = new WebSocket(`ws://127.0.0.1:${fixture.port}/${token}/ws`);
  await new Promise((resolve) => socket.once('open', resolve));
  socket.send('hello');
  const said = await new Promise((resolve) => socket.once('message', (data: Buffer) => resolve(data.toString())));
  expect(said).toBe('you said hello');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.close(1000);
  expect(await closed).toBe(1000);
});

test('an answer that begins while the proxy closes announces the end of its connection', async () => {
  await using fixture = await openFixture({ drain: { noticeMs: 0, deadlineMs: 10_000 } });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: received, resolve: receive } = Promise.withResolvers<void>();
  await using program = await startProgram((_request, response) => {
    receive();
    void released.then(() => response.end('done'));
  });
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await received;
  const closing = fixture.proxy[Symbol.asyncDispose]();
  release();
  expect(await gathered(client)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\nConnection: close\r\n[^]*done$/);
  await closing;
});

test('closing waits for open requests, then destroys the remaining ones', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, drain: { noticeMs: 0, deadlineMs: 500 } });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await using program = await startProgram((request, response) => {
    response.write('begun ');
    if (request.url === '/ends') void released.then(() => response.end('ended'));
  });
  await using raw = await startRawProgram((socket) => {
    socket.write('HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  });
  const { token } = await spawnReady(fixture, program);
  const upgradable = await spawnReady(fixture, raw);
  const upgraded = await connected(fixture.port);
  upgraded.write(`GET /${upgradable.token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
  await once(upgraded, 'data');
  const ends = await fetch(`${fixture.url}/${token}/ends`);
  const never = await fetch(`${fixture.url}/${token}/never`);
  const closing = fixture.proxy[Symbol.asyncDispose]();
  let isClosed = false;
  void closing.then(() => (isClosed = true));
  await clock.advance(0);
  const late = await fetch(`${fixture.url}/${token}/ends`);
  expect([late.status, late.headers.get('connection')]).toEqual([503, 'close']);
  release();
  expect(await ends.text()).toBe('begun ended');
  const cut = never.text().catch((error: Error) => error.message);
  await until(async () => {
    await clock.advance(500);
    return isClosed;
  });
  expect(await cut).toBe('terminated');
  await gathered(upgraded);
  await fixture.proxy[Symbol.asyncDispose]();
  expect(fixture.reports.at(-1)).toEqual({});
  await until(() => raw.sockets.size === 0);
});
