import { expect, test } from 'vitest';
import {
  connected,
  exchangeBytes,
  openFixture,
  spawnReady,
  startProgram,
  startRawProgram,
  until,
} from './testing/fixture.ts';

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
const plain = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const unknown = `/${'0'.repeat(43)}/`;

test('an upgrade request behind unanswered requests is rejected after their answers', async () => {
  await using fixture = await openFixture();
  const got = await exchangeBytes(fixture.port, plain(unknown) + plain(unknown) + upgrade(unknown));
  expect(got.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 410', 'HTTP/1.1 410', 'HTTP/1.1 400']);
});

test('pipelined requests reach the backend one after another, in their order', async () => {
  await using fixture = await openFixture();
  const seen: string[] = [];
  let open = 0;
  await using program = await startProgram((request, response) => {
    open += 1;
    seen.push(`${request.url} beside ${open - 1}`);
    request.resume().once('end', () => {
      setImmediate(() => {
        open -= 1;
        response.end();
      });
    });
  });
  const { token } = await spawnReady(fixture, program);
  const post = `POST /${token}/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(50)}0\r\n\r\n`;
  const last = `GET /${token}/3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
  const got = await exchangeBytes(fixture.port, post + plain(`/${token}/2`) + last);
  expect(seen).toEqual(['/1 beside 0', '/2 beside 0', '/3 beside 0']);
  expect(got.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 200']);
});

test('pipelined requests of a client that disconnects no longer count as open', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram(() => {});
  const { token, backend } = await spawnReady(fixture, program);
  for (const last of [plain(`/${token}/`), upgrade(`/${token}/`)]) {
    const client = await connected(fixture.port);
    client.write(plain(`/${token}/`) + plain(`/${token}/`) + last);
    await until(() => program.sockets.size === 1);
    client.resetAndDestroy();
    await until(() => program.sockets.size === 0);
    await until(() => fixture.reports.at(-1)?.[backend] === undefined);
    expect(fixture.reports.at(-1)).toEqual({});
  }
});

test('a client that sends thousands of requests ahead of their answers is disconnected', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram(() => {});
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  const request = `GET /${token}/ HTTP/1.1\r\nHost: a\r\nTrailer: x\r\n\r\n`;
  client.on('error', () => {}).write(request.repeat(5_000));
  await until(() => client.destroyed);
  await until(() => program.sockets.size === 0);
  expect(await fixture.metrics.metrics()).toMatch(/requests_total\{code_class="cut"\} 1$/m);
});
