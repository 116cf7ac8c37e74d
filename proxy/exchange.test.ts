import { expect, test } from 'vitest';
import { connected, exchangeBytes, openHouse, spawnReady, startRawProgram, until } from './testing/house.ts';

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
const plain = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const unknown = `/${'0'.repeat(43)}/`;

test('an upgrade that comes before earlier answers have gone is refused after them', async () => {
  await using house = await openHouse();
  const got = await exchangeBytes(house.port, plain(unknown) + plain(unknown) + upgrade(unknown));
  expect(got.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 410', 'HTTP/1.1 410', 'HTTP/1.1 400']);
});

test('a client that leaves while answers wait for their turn is counted as open no longer', async () => {
  await using house = await openHouse();
  await using program = await startRawProgram(() => {});
  const { token, backend } = await spawnReady(house, program);
  for (const last of [plain(`/${token}/`), upgrade(`/${token}/`)]) {
    const client = await connected(house.port);
    client.write(plain(`/${token}/`) + plain(`/${token}/`) + last);
    await until(() => program.sockets.size >= 2);
    client.resetAndDestroy();
    await until(() => program.sockets.size === 0);
    await until(() => house.told.at(-1)?.[backend] === undefined);
    expect(house.told.at(-1)).toEqual({});
  }
});
