import { expect, test } from 'vitest';
import { exchangeBytes, openFixture, spawnReady, startRawProgram } from '../testing/fixture.ts';

test.each([
  ['NUL', 'O\0K'],
  ['a control character', '\x01'],
  ['DEL', 'OK\x7f'],
  ['a tab', '\tOK'],
  ['UTF-8', 'Schön'],
  ['nothing', ''],
  ['a long text', 'x'.repeat(2_000)],
])('the client gets the standard reason phrase instead of the backend’s (%s)', async (_name, reason) => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => {
    socket.end(Buffer.from(`HTTP/1.1 404 ${reason}\r\nContent-Length: 2\r\n\r\nhi`));
  });
  const { token } = await spawnReady(fixture, program);
  const got = await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(got).toMatch(/^HTTP\/1\.1 (?:404 Not Found|502 Bad Gateway)\r\n/);
});
