/** Who leaves in the middle, client or backend, takes the other side along. */
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { connected, gathered, openHouse, spawn, spawnReady, startRawProgram, until } from '../testing/house.ts';

test('a backend that breaks off cuts the client', async () => {
  await using house = await openHouse();
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
  const { token } = await spawnReady(house, program);
  for (const path of Object.keys(framings)) {
    const outgoing = send(`${house.url}/${token}/${path}`, { agent: false });
    outgoing.end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    await expect(gathered(answer)).rejects.toThrow('aborted');
    expect(answer.complete).toBe(false);
  }
});

test.each([
  ['before the answer', 'destroy'],
  ['before the answer', 'end'],
  ['in the answer', 'destroy'],
  ['in the answer', 'end'],
] as const)('a client that leaves %s (%s) lets go of the backend', async (when, leave) => {
  await using house = await openHouse();
  await using program = await startRawProgram((socket) => {
    if (when === 'in the answer') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart');
  });
  const { token, backend } = await spawnReady(house, program);
  const client = await connected(house.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await until(() => program.sockets.size === 1);
  if (when === 'in the answer') await once(client, 'data');
  client[leave]();
  await until(() => program.sockets.size === 0);
  await until(() => house.told.at(-1)?.[backend] === undefined);
  expect(house.told.at(-1)).toEqual({});
  client.destroy();
});

test('a client that leaves in the middle of its body lets go of the backend', async () => {
  await using house = await openHouse();
  await using program = await startRawProgram(() => {});
  const { token } = await spawnReady(house, program);
  const client = await connected(house.port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart`);
  await until(() => program.sockets.size === 1);
  client.destroy();
  await until(() => program.sockets.size === 0);
  expect(program.sockets.size).toBe(0);
});

test('a client that leaves takes along what waits behind its first request', async () => {
  await using house = await openHouse();
  await using program = await startRawProgram(() => {});
  const { token } = await spawnReady(house, program);
  const client = await connected(house.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(20));
  await until(() => program.sockets.size === 20);
  client.destroy();
  await until(() => program.sockets.size === 0);
  await until(async () => /open_connections 0$/m.test(await house.metrics.metrics()));
  expect(await house.metrics.metrics()).toMatch(/requests_total\{code_class="cut"\} 20$/m);
});

test('and what is still held behind it', async () => {
  await using house = await openHouse();
  const { token } = await spawn(house);
  const client = await connected(house.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(20));
  await until(async () => /open_connections 20$/m.test(await house.metrics.metrics()));
  client.destroy();
  await until(async () => /open_connections 0$/m.test(await house.metrics.metrics()));
  expect(await house.metrics.metrics()).toMatch(/requests_total\{code_class="cut"\} 20$/m);
});
