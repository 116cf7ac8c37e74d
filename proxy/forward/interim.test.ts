/** Interim answers of a backend reach the client before the final answer, on both paths. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connected, exchangeBytes, openFixture, spawnReady, startRawProgram, until } from '../testing/fixture.ts';
import type { Fixture, Path } from '../testing/fixture.ts';
import { maxInterimAnswers } from './answer-limits.ts';

const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';

describe.each<Path>(['plain', 'general'])('on the %s path', (path) => {
  let fixture: Fixture;
  beforeAll(async () => void (fixture = await openFixture({ path })));
  afterAll(() => fixture[Symbol.asyncDispose]());

  /** The bytes that a client gets if the backend sends these bytes. */
  async function answered(
    bytes: string,
    { lines = '', version = '1.1' } = {},
  ): Promise<{ got: string; token: string }> {
    await using program = await startRawProgram((socket) => socket.end(bytes, 'latin1'));
    const { token } = await spawnReady(fixture, program);
    const connection = lines === '' ? 'Connection: close\r\n' : lines;
    const request = `GET /${token}/ HTTP/${version}\r\nHost: a\r\n${connection}\r\n`;
    return { got: await exchangeBytes(fixture.port, request), token };
  }

  test('early hints arrive before the backend has answered, with the session in their links', async () => {
    let backend: Socket | undefined;
    await using program = await startRawProgram((socket) => {
      backend = socket;
      socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-A: b\r\nContent-Length: 3\r\n\r\n');
    });
    const { token } = await spawnReady(fixture, program);
    const client = await connected(fixture.port);
    client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    const [first] = (await once(client, 'data')) as [Buffer];
    const hints = `HTTP/1.1 103 Early Hints\r\nLink: </${token}/a.css>; rel=preload\r\nX-A: b\r\n\r\n`;
    expect(first.toString()).toBe(hints);
    let rest = '';
    client.on('data', (chunk: Buffer) => (rest += chunk.toString()));
    backend?.end(whole);
    await until(() => rest.endsWith('\r\n\r\nhi'));
    expect(rest).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test('all interim answers arrive in order, without headers that only the platform may set', async () => {
    const interim = [
      'HTTP/1.1 102 Processing\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nX-Berth-Error: gone\r\nX_Verified-Secret: s\r\nConnection: x-b\r\nX-B: c\r\n\r\n',
      'HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Limit: max-age=3\r\n\r\n',
    ];
    const { got } = await answered(interim.join('') + whole);
    const heads = got.split('\r\n\r\n');
    expect(heads.slice(0, 2)).toEqual(['HTTP/1.1 102 Processing', 'HTTP/1.1 103 Early Hints']);
    expect(heads[2]).toMatch(/^HTTP\/1\.1 104 \r\nUpload-Limit: max-age=3$/);
    expect(heads[3]).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(heads[4]).toBe('hi');
  });

  test('the client does not get a 100 of the backend', async () => {
    const { got } = await answered(`HTTP/1.1 100 Continue\r\n\r\n${whole}`);
    expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test('an HTTP/1.0 client gets no interim answers', async () => {
    const { got } = await answered(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${whole}`, { version: '1.0' });
    expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test('a client that asks for an upgrade gets interim answers, too', async () => {
    const agreement = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhi';
    const lines = 'Connection: Upgrade\r\nUpgrade: echo\r\n';
    const { got } = await answered(`HTTP/1.1 103 Early Hints\r\nLink: <b>\r\n\r\n${agreement}`, { lines });
    expect(got).toMatch(/^HTTP\/1\.1 103 Early Hints\r\nLink: <b>\r\n\r\nHTTP\/1\.1 101 [^]*\r\n\r\nhi$/);
  });

  test('the allowed number of interim answers may precede an answer', async () => {
    const early = 'HTTP/1.1 102 Processing\r\n\r\n';
    const { got } = await answered(early.repeat(maxInterimAnswers) + whole);
    expect(got.split(early)).toHaveLength(maxInterimAnswers + 1);
    expect(got).toMatch(/HTTP\/1\.1 200 OK[^]*hi$/);
  });
});
