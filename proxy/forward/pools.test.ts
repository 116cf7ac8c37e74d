import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { idleMs } from './pools.ts';
import {
  connected,
  gathered,
  openFixture,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
} from '../testing/fixture.ts';

test('connections are kept between requests, one pool for each backend', async () => {
  await using fixture = await openFixture();
  await using program = await startMirror();
  const { token } = await spawnReady(fixture, program);
  for (let i = 0; i < 5; i += 1) await (await fetch(`${fixture.url}/${token}/`)).text();
  expect(program.connections()).toBe(1);
  const other = await spawnReady(fixture, program);
  await (await fetch(`${fixture.url}/${other.token}/`)).text();
  expect(program.connections()).toBe(2);
});

test.each([
  ['GET', 200],
  ['HEAD', 200],
  ['POST', 502],
])('a request on a dead pooled connection: %s gets %i', async (method, status) => {
  await using fixture = await openFixture();
  using warnings = vi.spyOn(process, 'emitWarning');
  let heads = 0;
  await using program = await startRawProgram((socket) => {
    heads += 1;
    // The second request finds the first connection closed, as if the close had crossed the request.
    if (heads === 2) socket.resetAndDestroy();
    else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  });
  const { token } = await spawnReady(fixture, program);
  expect((await fetch(`${fixture.url}/${token}/`)).status).toBe(200);
  const answer = await fetch(`${fixture.url}/${token}/`, { method });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('x-berth-error')).toBe(status === 502 ? 'backend-unreachable' : null);
  expect(heads).toBe(status === 502 ? 2 : 3);
  // The listeners of the first attempt were removed before the second.
  expect(warnings).not.toHaveBeenCalled();
});

test('a connection that the backend has reset after its answer carries no other request', async () => {
  await using fixture = await openFixture();
  const { promise: opened, resolve } = Promise.withResolvers<Socket>();
  await using program = await startRawProgram((socket, head) => {
    if (head.startsWith('POST /next')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone');
    else resolve(socket);
  });
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\npart`);
  const atBackend = await opened;
  client.write(`restPOST /${token}/next HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`);
  atBackend.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig');
  atBackend.resetAndDestroy();
  expect(await gathered(client)).toMatch(/^HTTP\/1\.1 413 [^]*bigHTTP\/1\.1 200 [^]*done$/);
});

test('concurrent requests reuse the connections of earlier concurrent requests', async () => {
  // The clock stands still, so no idle connection is closed.
  await using fixture = await openFixture({ path: 'plain', clock: new ManualClock(new Date()) });
  const clients = 100;
  const waiting: ServerResponse[] = [];
  await using program = await startProgram((_request, response) => {
    waiting.push(response);
    if (waiting.length === clients) for (const each of waiting.splice(0)) each.end('ok');
  });
  const { token } = await spawnReady(fixture, program);
  const all = async () => {
    const answers = Array.from({ length: clients }, async () => (await fetch(`${fixture.url}/${token}/`)).text());
    expect(await Promise.all(answers)).toEqual(Array.from({ length: clients }, () => 'ok'));
  };
  await all();
  await all();
  expect(program.connections()).toBe(clients);
});

test('a request that fails on a new connection is not retried', async () => {
  await using fixture = await openFixture();
  let heads = 0;
  await using program = await startRawProgram((socket) => {
    heads += 1;
    socket.resetAndDestroy();
  });
  const { token } = await spawnReady(fixture, program);
  expect((await fetch(`${fixture.url}/${token}/`)).status).toBe(502);
  expect(heads).toBe(1);
});

test('an answer may pause for longer than the idle timeout of a connection', async () => {
  await using fixture = await openFixture();
  await using program = await startProgram((_request, response) => {
    response.write('begun ');
    setTimeout(() => response.end('ended'), idleMs + 300);
  });
  const { token } = await spawnReady(fixture, program);
  expect(await (await fetch(`${fixture.url}/${token}/`)).text()).toBe('begun ended');
});
