import { once } from 'node:events';
import { Agent, request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { idleMs } from './pools.ts';
import {
  connected,
  exchangeBytes,
  gathered,
  openHouse,
  spawn,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  until,
} from '../testing/house.ts';
import type { Seen } from '../testing/house.ts';

const mebibyte = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

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
  await using house = await openHouse();
  const heads: string[] = [];
  await using program = await startRawProgram((socket, head) => {
    heads.push(head);
    socket.end('HTTP/1.1 204 No Content\r\n\r\n');
  });
  const { token } = await spawnReady(house, program);
  await exchangeBytes(house.port, `GET /${token}${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(heads[0]?.split('\r\n')[0]).toBe(`GET ${path} HTTP/1.1`);
});

test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'PURGE', 'QUERY'])(
  '%s reaches the backend, with a body and without',
  async (method) => {
    await using house = await openHouse();
    const seen: string[] = [];
    await using program = await startProgram((request, response) => {
      void gathered(request).then((body) => {
        seen.push(`${request.method} ${body}`);
        response.setHeader('content-length', 0).end();
      });
    });
    const { token } = await spawnReady(house, program);
    const head = `${method} /${token}/ HTTP/1.1\r\nHost: a\r\n`;
    const chunked = 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
    const sized = 'Content-Length: 5\r\nConnection: close\r\n\r\nworld';
    const close = 'Connection: close\r\n';
    for (const rest of [`${close}\r\n`, `${close}${chunked}`, sized]) await exchangeBytes(house.port, head + rest);
    expect(seen).toEqual([`${method} `, `${method} hello`, `${method} world`]);
    expect(program.connections()).toBe(1);
  },
);

test('a body is never taken for the next request', async () => {
  await using house = await openHouse();
  const urls: (string | undefined)[] = [];
  await using program = await startProgram((request, response) => {
    urls.push(request.url);
    request.resume().once('end', () => response.end('ok'));
  });
  const { token } = await spawnReady(house, program);
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\nx-verified-username: root\r\n\r\n';
  for (const method of ['DELETE', 'OPTIONS', 'GET', 'POST']) {
    await exchangeBytes(
      house.port,
      `${method} /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n` +
        `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
    );
  }
  expect(urls).toEqual(['/', '/', '/', '/']);
});

test('Expect: 100-continue is answered, and the body arrives', async () => {
  await using house = await openHouse();
  await using program = await startProgram((request, response) => void pipeline(request, response));
  const { token } = await spawnReady(house, program);
  const outgoing = send(`${house.url}/${token}/`, { method: 'POST', headers: { expect: '100-continue' } });
  outgoing.flushHeaders();
  await once(outgoing, 'continue');
  outgoing.end('hello');
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(await gathered(answer)).toBe('hello');
});

test.each([1, 64])('%i MiB stream through both ways at once, in bounded memory', async (mebibytes) => {
  await using house = await openHouse();
  await using program = await startProgram((request, response) => void pipeline(request, response));
  const { token } = await spawnReady(house, program);
  const outgoing = send(`${house.url}/${token}/`, { method: 'POST' });
  const block = Buffer.alloc(mebibyte, 'abcdefg\n');
  const held = () => {
    // The first run only finds what the second one frees.
    collectGarbage();
    collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  const before = held();
  let most = 0;
  const source = function* () {
    for (let i = 0; i < mebibytes; i += 1) yield block;
  };
  const sending = pipeline(Readable.from(source()), outgoing);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  let received = 0;
  for await (const chunk of answer) {
    const { length } = chunk as Buffer;
    if (received % (8 * mebibyte) < length) most = Math.max(most, held() - before);
    received += length;
  }
  await sending;
  expect(received).toBe(mebibytes * mebibyte);
  expect(most).toBeLessThan(8 * mebibyte);
});

test('a client that reads slowly slows the backend down, and counts as open until it has all', async () => {
  await using house = await openHouse();
  let written = 0;
  const block = Buffer.alloc(mebibyte);
  await using program = await startProgram((_request, response) => {
    const source = function* () {
      for (let i = 0; i < 64; i += 1) {
        written += 1;
        yield block;
      }
    };
    void pipeline(Readable.from(source()), response);
  });
  const { token, backend } = await spawnReady(house, program);
  const client = await connected(house.port);
  client.pause();
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  let steadySince = 0;
  let last = -1;
  await until(() => {
    if (written !== last) steadySince = Date.now();
    last = written;
    return written > 0 && Date.now() - steadySince > 300;
  });
  expect(written).toBeLessThan(40);
  expect(house.told.at(-1)).toEqual({ [backend]: 1 });
  expect((await gathered(client)).length).toBeGreaterThan(64 * mebibyte);
  await until(() => house.told.at(-1)?.[backend] === undefined);
});

test('events come one by one, and the head before the first', async () => {
  await using house = await openHouse();
  const { promise: listening, resolve: begin } = Promise.withResolvers<() => void>();
  await using program = await startProgram((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    let count = 0;
    begin(() => {
      count += 1;
      response.write(`data: ${count}\n\n`);
    });
  });
  const { token } = await spawnReady(house, program);
  const leaving = new AbortController();
  const answer = await fetch(`${house.url}/${token}/`, { signal: leaving.signal });
  const next = await listening;
  const reader = answer.body?.getReader();
  for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
    next();
    const { value } = (await reader?.read()) ?? {};
    expect(Buffer.from(value ?? []).toString()).toBe(event);
  }
  leaving.abort();
});

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

test('an answer that comes before the body has been sent arrives', async () => {
  await using house = await openHouse();
  await using program = await startRawProgram((socket) => {
    socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig');
  });
  const { token } = await spawnReady(house, program);
  const client = await connected(house.port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart`);
  const [data] = (await once(client, 'data')) as [Buffer];
  expect(data.toString()).toMatch(/^HTTP\/1\.1 413 Too Large\r\n[^]*big$/);
  client.destroy();
});

test('connections are kept between requests, one pool for each backend', async () => {
  await using house = await openHouse();
  await using program = await startMirror();
  const { token } = await spawnReady(house, program);
  for (let i = 0; i < 5; i += 1) await (await fetch(`${house.url}/${token}/`)).text();
  expect(program.connections()).toBe(1);
  const other = await spawnReady(house, program);
  await (await fetch(`${house.url}/${other.token}/`)).text();
  expect(program.connections()).toBe(2);
});

test.each([
  ['GET', 200],
  ['HEAD', 200],
  ['POST', 502],
])('a kept connection that turns out dead: %s gets %i', async (method, status) => {
  await using house = await openHouse();
  let heads = 0;
  await using program = await startRawProgram((socket) => {
    heads += 1;
    // The second request on the first connection finds it closed: what a close that crosses a request looks like.
    if (heads === 2) socket.resetAndDestroy();
    else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  });
  const { token } = await spawnReady(house, program);
  expect((await fetch(`${house.url}/${token}/`)).status).toBe(200);
  const answer = await fetch(`${house.url}/${token}/`, { method });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('x-berth-error')).toBe(status === 502 ? 'backend-unreachable' : null);
  expect(heads).toBe(status === 502 ? 2 : 3);
});

test('a request is not repeated on a connection that was new', async () => {
  await using house = await openHouse();
  let heads = 0;
  await using program = await startRawProgram((socket) => {
    heads += 1;
    socket.resetAndDestroy();
  });
  const { token } = await spawnReady(house, program);
  expect((await fetch(`${house.url}/${token}/`)).status).toBe(502);
  expect(heads).toBe(1);
});

test('fifty at once, each gets its own answer', async () => {
  await using house = await openHouse();
  await using program = await startMirror();
  const { token } = await spawnReady(house, program);
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });
  const one = async (i: number) => {
    const outgoing = send(`${house.url}/${token}/${i}`, { agent });
    outgoing.end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    return (JSON.parse(await gathered(answer)) as Seen).url;
  };
  const numbers = Array.from({ length: 50 }, (_, i) => i);
  expect(await Promise.all(numbers.map(one))).toEqual(numbers.map((i) => `/${i}`));
  agent.destroy();
});

test('requests that come in one packet are answered in their order', async () => {
  await using house = await openHouse();
  await using program = await startProgram((request, response) => {
    setTimeout(() => response.end(`[${request.url}]`), request.url === '/1' ? 30 : 0);
  });
  const { token } = await spawnReady(house, program);
  const line = (i: number, extra = '') => `GET /${token}/${i} HTTP/1.1\r\nHost: a\r\n${extra}\r\n`;
  const got = await exchangeBytes(house.port, line(1) + line(2) + line(3, 'Connection: close\r\n'));
  expect(got.match(/\[\/\d\]/g)).toEqual(['[/1]', '[/2]', '[/3]']);
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

test('an answer may be silent for longer than a connection is kept idle', async () => {
  await using house = await openHouse();
  await using program = await startProgram((_request, response) => {
    response.write('begun ');
    setTimeout(() => response.end('ended'), idleMs + 300);
  });
  const { token } = await spawnReady(house, program);
  expect(await (await fetch(`${house.url}/${token}/`)).text()).toBe('begun ended');
});

test('no deprecated part of Node is used', async () => {
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`);
  process.on('warning', onWarning);
  {
    await using house = await openHouse();
    await using program = await startMirror();
    const { token } = await spawnReady(house, program);
    for (let i = 0; i < 20; i += 1) await (await fetch(`${house.url}/${token}/`)).text();
  }
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
