// Takes about 4 s
import { once } from 'node:events';
import { Agent, request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import {
  connected,
  exchangeBytes,
  gathered,
  openFixture,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
} from '../testing/fixture.ts';
import type { Fixture, Seen } from '../testing/fixture.ts';

test.each([
  '/',
  '/?',
  '/?a=b&a=c&&',
  '//a//b/',
  '/a/../b/./c',
  '/%2e%2e/%2E%2e/etc',
  '/a%2fb%5Cc%00',
  '/a?b?c=/../d',
  '/\\..\\x',
  '/http://elsewhere.example/',
  '/@elsewhere.example:80/',
  '/{}|^`"<>',
  "/;x=1/,!$&()*+'",
  `/${'x'.repeat(4000)}`,
])('the path arrives byte for byte: %s', async (path) => {
  await using fixture = await openFixture();
  const heads: string[] = [];
  await using program = await startRawProgram((socket, head) => {
    heads.push(head);
    socket.end('HTTP/1.1 204 No Content\r\n\r\n');
  });
  const { token } = await spawnReady(fixture, program);
  await exchangeBytes(fixture.port, `GET /${token}${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(heads[0]?.split('\r\n')[0]).toBe(`GET ${path} HTTP/1.1`);
});

test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'PURGE', 'QUERY'])(
  '%s is forwarded with and without a body',
  async (method) => {
    await using fixture = await openFixture();
    const seen: string[] = [];
    await using program = await startProgram((request, response) => {
      void gathered(request).then((body) => {
        seen.push(`${request.method} ${body}`);
        response.setHeader('content-length', 0).end();
      });
    });
    const { token } = await spawnReady(fixture, program);
    const head = `${method} /${token}/ HTTP/1.1\r\nHost: a\r\n`;
    const chunked = 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
    const sized = 'Content-Length: 5\r\nConnection: close\r\n\r\nworld';
    const close = 'Connection: close\r\n';
    for (const rest of [`${close}\r\n`, `${close}${chunked}`, sized]) await exchangeBytes(fixture.port, head + rest);
    expect(seen).toEqual([`${method} `, `${method} hello`, `${method} world`]);
    expect(program.connections()).toBe(1);
  },
);

test('a body is never read as the next request', async () => {
  await using fixture = await openFixture();
  const urls: (string | undefined)[] = [];
  await using program = await startProgram((request, response) => {
    urls.push(request.url);
    request.resume().once('end', () => response.end('ok'));
  });
  const { token } = await spawnReady(fixture, program);
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\nx-verified-username: root\r\n\r\n';
  for (const method of ['DELETE', 'OPTIONS', 'GET', 'POST']) {
    await exchangeBytes(
      fixture.port,
      `${method} /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n` +
        `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
    );
  }
  expect(urls).toEqual(['/', '/', '/', '/']);
});

test('Expect: 100-continue is answered, and the body arrives', async () => {
  await using fixture = await openFixture();
  await using program = await startProgram((request, response) => void pipeline(request, response));
  const { token } = await spawnReady(fixture, program);
  const outgoing = send(`${fixture.url}/${token}/`, { method: 'POST', headers: { expect: '100-continue' } });
  outgoing.flushHeaders();
  await once(outgoing, 'continue');
  outgoing.end('hello');
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(await gathered(answer)).toBe('hello');
});

test('an answer that is sent before the request body is complete arrives', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => {
    socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig');
  });
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart`);
  const [data] = (await once(client, 'data')) as [Buffer];
  expect(data.toString()).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n[^]*big$/);
  client.destroy();
});

test.each([
  ['keeps', ''],
  ['closes', 'Connection: close\r\n'],
])(
  'a client that sends its whole body first and then %s its connection gets an earlier answer',
  async (_what, line) => {
    await using fixture = await openFixture();
    await using program = await startRawProgram((socket) => {
      socket.end('HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig');
      // A connection that is closed with unread bytes is reset, which could overtake the answer.
      socket.pause();
      setTimeout(() => socket.destroy(), 300);
    });
    const { token } = await spawnReady(fixture, program);
    const client = await connected(fixture.port);
    client.pause().write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\n${line}Content-Length: 6000000\r\n\r\n`);
    await new Promise((resolve) => client.write(Buffer.alloc(6_000_000), resolve));
    const [data] = (await once(client.resume(), 'data')) as [Buffer];
    expect(data.toString()).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n[^]*big$/);
    if (line !== '') await once(client, 'close');
    client.destroy();
  },
);

test.each(['content-length: 3\r\n\r\nbig', 'transfer-encoding: chunked\r\n\r\n3\r\nbig\r\n0\r\n\r\n'])(
  'an early answer arrives although the backend has reset its connection: %j',
  async (rest) => {
    await using fixture = await openFixture();
    await using upload = await uploadUntilReset(fixture, `HTTP/1.1 413 Too Large\r\n${rest}`);
    const [data] = (await once(upload.client, 'data')) as [Buffer];
    expect(data.toString()).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n[^]*big/);
    upload.client.destroy();
  },
);

test('an answer without a length does not look complete when the backend has reset its connection', async () => {
  await using fixture = await openFixture();
  await using upload = await uploadUntilReset(fixture, 'HTTP/1.1 200 OK\r\n\r\npart of it');
  const answer = await gathered(upload.client);
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\na\r\npart of it\r\n$/);
});

/** Uploads a part of a body to a backend that answers and resets its connection before the proxy writes another part to it. */
async function uploadUntilReset(fixture: Fixture, answer: string): Promise<AsyncDisposable & { client: Socket }> {
  const { promise: opened, resolve } = Promise.withResolvers<Socket>();
  const program = await startRawProgram(resolve);
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart`);
  const atBackend = await opened;
  // The proxy reads this after the reset, and writes it before it can read the answer.
  client.write('another part');
  atBackend.write(answer);
  atBackend.resetAndDestroy();
  return { client, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

test('each of fifty concurrent requests gets its own answer', async () => {
  await using fixture = await openFixture();
  await using program = await startMirror();
  const { token } = await spawnReady(fixture, program);
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });
  const one = async (i: number) => {
    const outgoing = send(`${fixture.url}/${token}/${i}`, { agent });
    outgoing.end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    return (JSON.parse(await gathered(answer)) as Seen).url;
  };
  const numbers = Array.from({ length: 50 }, (_, i) => i);
  expect(await Promise.all(numbers.map(one))).toEqual(numbers.map((i) => `/${i}`));
  agent.destroy();
});

test('requests that arrive in one packet are answered in order', async () => {
  await using fixture = await openFixture();
  await using program = await startProgram((request, response) => {
    setTimeout(() => response.end(`[${request.url}]`), request.url === '/1' ? 30 : 0);
  });
  const { token } = await spawnReady(fixture, program);
  const line = (i: number, extra = '') => `GET /${token}/${i} HTTP/1.1\r\nHost: a\r\n${extra}\r\n`;
  const got = await exchangeBytes(fixture.port, line(1) + line(2) + line(3, 'Connection: close\r\n'));
  expect(got.match(/\[\/\d\]/g)).toEqual(['[/1]', '[/2]', '[/3]']);
});

test('no deprecated API of Node is used', async () => {
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`);
  process.on('warning', onWarning);
  {
    await using fixture = await openFixture();
    await using program = await startMirror();
    const { token } = await spawnReady(fixture, program);
    for (let i = 0; i < 20; i += 1) await (await fetch(`${fixture.url}/${token}/`)).text();
  }
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
