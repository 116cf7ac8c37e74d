/** An unexpected error in a callback ends only the request or connection that the callback belongs to. */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { Clock } from '../core/clock/clock.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import { silentLog } from '../core/log/log.ts';
import {
  exchangeBytes,
  openFixture,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  until,
} from './testing/fixture.ts';

const broken = () => {
  throw new Error('broken');
};
const switching = 'HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';
const plain = (token: string) => `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
const upgrade = (token: string) => `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`;

test('a log that fails at the end of a request', async () => {
  const log = silentLog();
  log.info = broken;
  await using fixture = await openFixture({ log });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await exchangeBytes(fixture.port, plain(token))).toMatch(/^HTTP\/1\.1 200 /);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
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
  await using fixture = await openFixture({ clock });
  const publish = fixture.bus.publish.bind(fixture.bus);
  fixture.bus.publish = broken;
  for (const action of timers) expect(action).not.toThrow();
  expect(timers.length).toBeGreaterThan(1);
  fixture.bus.publish = publish;
});

test('an upgraded connection that cannot be joined with its backend', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => void socket.write(switching));
  const { token, backend } = await spawnReady(fixture, program);
  fixture.server.on('upgrade', (_request, socket) => void (socket.write = broken));
  expect(await exchangeBytes(fixture.port, upgrade(token))).toMatch(/^(?:HTTP\/1\.1 101 |$)/);
  await until(() => program.sockets.size === 0);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
});

test('trailers that cannot be sent', async () => {
  await using fixture = await openFixture({ path: 'general' });
  await using program = await startProgram((_request, response) => {
    response.write('half');
    response.addTrailers({ 'x-sum': '1' });
    response.end();
  });
  const { token, backend } = await spawnReady(fixture, program);
  fixture.server.on('request', (_request, response) => void (response.addTrailers = broken));
  expect(await exchangeBytes(fixture.port, plain(token))).not.toMatch(/\r\n0\r\n/);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
});

test.each([plain, upgrade])('a request whose context cannot be created', async (head) => {
  await using fixture = await openFixture({ path: 'general' });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  fixture.server.prependListener('request', (request) => void (request.socket.setKeepAlive = broken));
  fixture.server.prependListener('upgrade', (_request, socket) => {
    (socket as Socket).setKeepAlive = broken;
  });
  expect(await exchangeBytes(fixture.port, head(token))).toBe('');
});
