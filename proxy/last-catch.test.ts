/** A part that fails where nothing expects it ends what it belongs to, and nothing else. */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { Clock } from '../core/clock/clock.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import { silentLog } from '../core/log/log.ts';
import {
  exchangeBytes,
  openHouse,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  until,
} from './testing/house.ts';

const broken = () => {
  throw new Error('broken');
};
const switching = 'HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';
const plain = (token: string) => `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
const upgrade = (token: string) => `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`;

test('a log that fails at the end of a request', async () => {
  const log = silentLog();
  log.info = broken;
  await using house = await openHouse({ log });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(house, mirror);
  expect(await exchangeBytes(house.port, plain(token))).toMatch(/^HTTP\/1\.1 200 /);
  await until(() => house.told.at(-1)?.[backend] === undefined);
});

test('a timer that fails', async () => {
  const timers: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    every: (periodMs, action) => {
      timers.push(action);
      return systemClock.every(periodMs, action);
    },
  };
  await using house = await openHouse({ clock });
  const publish = house.bus.publish.bind(house.bus);
  house.bus.publish = broken;
  for (const action of timers) expect(action).not.toThrow();
  expect(timers.length).toBeGreaterThan(1);
  house.bus.publish = publish;
});

test('an upgraded connection that cannot be tied to its backend', async () => {
  await using house = await openHouse();
  await using program = await startRawProgram((socket) => void socket.write(switching));
  const { token, backend } = await spawnReady(house, program);
  house.server.on('upgrade', (_request, socket) => void (socket.setMaxListeners = broken));
  expect(await exchangeBytes(house.port, upgrade(token))).toMatch(/^(?:HTTP\/1\.1 101 |$)/);
  await until(() => program.sockets.size === 0);
  await until(() => house.told.at(-1)?.[backend] === undefined);
});

test('trailers that cannot be sent', async () => {
  await using house = await openHouse();
  await using program = await startProgram((_request, response) => {
    response.write('half');
    response.addTrailers({ 'x-sum': '1' });
    response.end();
  });
  const { token, backend } = await spawnReady(house, program);
  house.server.on('request', (_request, response) => void (response.addTrailers = broken));
  expect(await exchangeBytes(house.port, plain(token))).not.toMatch(/\r\n0\r\n/);
  await until(() => house.told.at(-1)?.[backend] === undefined);
});

test.each([plain, upgrade])('a request that cannot even be looked at', async (head) => {
  await using house = await openHouse();
  await using mirror = await startMirror();
  const { token } = await spawnReady(house, mirror);
  house.server.prependListener('request', (request) => void (request.socket.setKeepAlive = broken));
  house.server.prependListener('upgrade', (_request, socket) => {
    (socket as Socket).setKeepAlive = broken;
  });
  expect(await exchangeBytes(house.port, head(token))).toBe('');
});
