/** A client or backend that disconnects during a request ends the other side. */
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { connected, gathered, openFixture, spawn, spawnReady, startRawProgram, until } from '../testing/fixture.ts';

test('a backend that disconnects during its answer ends the connection of the client', async () => {
  await using fixture = await openFixture();
  const framings: Record<string, string> = {
    sized: 'Content-Length: 100\r\n\r\npart',
    chunked: 'Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n',
    'until-close': 'Connection: close\r\n\r\npart',
  };
  await using program = await startRawProgram((socket, head) => {
    const framing = framings[head.split(/[/ ]/)[2] ?? ''];
    socket.write(`HTTP/1.1 200 OK\r\n${framing}`);
    setImmediate(() => socket.resetAndDestroy());
  });
  const { token } = await spawnReady(fixture, program);
  for (const path of Object.keys(framings)) {
    const outgoing = send(`${fixture.url}/${token}/${path}`, { agent: false });
    outgoing.end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    await expect(gathered(answer)).rejects.toThrow('aborted');
    expect(answer.complete).toBe(false);
  }
});

test.each([
  ['before the answer', 'destroy'],
  ['before the answer', 'end'],
  ['during the answer', 'destroy'],
  ['during the answer', 'end'],
] as const)('a client that disconnects %s (%s) ends the connection to the backend', async (when, leave) => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => {
    if (when === 'during the answer') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart');
  });
  const { token, backend } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await until(() => program.sockets.size === 1);
  if (when === 'during the answer') await once(client, 'data');
  client[leave]();
  await until(() => program.sockets.size === 0);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
  expect(fixture.reports.at(-1)).toEqual({});
  client.destroy();
});

test('a client that disconnects during its body ends the connection to the backend', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram(() => {});
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart`);
  await until(() => program.sockets.size === 1);
  client.destroy();
  await until(() => program.sockets.size === 0);
  expect(program.sockets.size).toBe(0);
});

test('a client that disconnects ends its pipelined requests, of which only the first was forwarded', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram(() => {});
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(20));
  await until(() => program.sockets.size === 1);
  client.destroy();
  await until(() => program.sockets.size === 0);
  await until(async () => /open_connections 0$/m.test(await fixture.metrics.metrics()));
  expect(await fixture.metrics.metrics()).toMatch(/requests_total\{code_class="cut"\} 1$/m);
});

test('a client that disconnects ends its held pipelined requests', async () => {
  await using fixture = await openFixture();
  const { token } = await spawn(fixture);
  const client = await connected(fixture.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(20));
  await until(async () => /open_connections 1$/m.test(await fixture.metrics.metrics()));
  client.destroy();
  await until(async () => /open_connections 0$/m.test(await fixture.metrics.metrics()));
  expect(await fixture.metrics.metrics()).toMatch(/requests_total\{code_class="cut"\} 1$/m);
});
