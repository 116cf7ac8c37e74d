import { expect, test } from 'vitest';
import { connected, exchangeBytes, openFixture, spawnReady, startRawProgram, until } from './testing/fixture.ts';

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
const plain = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const unknown = `/${'0'.repeat(43)}/`;

test('an upgrade request behind unanswered requests is rejected after their answers', async () => {
  await using fixture = await openFixture();
  const got = await exchangeBytes(fixture.port, plain(unknown) + plain(unknown) + upgrade(unknown));
  expect(got.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 410', 'HTTP/1.1 410', 'HTTP/1.1 400']);
});

test('pipelined requests of a client that disconnects no longer count as open', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram(() => {});
  const { token, backend } = await spawnReady(fixture, program);
  for (const last of [plain(`/${token}/`), upgrade(`/${token}/`)]) {
    const client = await connected(fixture.port);
    client.write(plain(`/${token}/`) + plain(`/${token}/`) + last);
    await until(() => program.sockets.size >= 2);
    client.resetAndDestroy();
    await until(() => program.sockets.size === 0);
    await until(() => fixture.reports.at(-1)?.[backend] === undefined);
    expect(fixture.reports.at(-1)).toEqual({});
  }
});
