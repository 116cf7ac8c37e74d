// Takes about 4 s
/** Bodies of any length are streamed at the speed of the slower side, in bounded memory, each part as soon as it arrives. */
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import {
  connected,
  gathered,
  openFixture,
  spawnReady,
  startProgram,
  startRawProgram,
  until,
} from '../testing/fixture.ts';

const mebibyte = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
// Compiled code that was kept is not valid with other flags, and the next test files are loaded by this process.
setFlagsFromString('--no-expose-gc');

test.each([1, 64])('%i MiB are streamed in both directions at once, in bounded memory', async (mebibytes) => {
  await using fixture = await openFixture();
  await using program = await startProgram((request, response) => void pipeline(request, response));
  const { token } = await spawnReady(fixture, program);
  const outgoing = send(`${fixture.url}/${token}/`, { method: 'POST' });
  const block = Buffer.alloc(mebibyte, 'abcdefg\n');
  const held = () => {
    // Only the second run frees everything that the first one found.
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

test('a slow client slows the backend down, and its connection counts as open until it has received everything', async () => {
  await using fixture = await openFixture();
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
  const { token, backend } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
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
  expect(fixture.reports.at(-1)).toEqual({ [backend]: 1 });
  expect((await gathered(client)).length).toBeGreaterThan(64 * mebibyte);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
});

test('events arrive one by one, and the head before the first', async () => {
  await using fixture = await openFixture();
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
  const { token } = await spawnReady(fixture, program);
  const leaving = new AbortController();
  const answer = await fetch(`${fixture.url}/${token}/`, { signal: leaving.signal });
  const next = await listening;
  const reader = answer.body?.getReader();
  for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
    next();
    const { value } = (await reader?.read()) ?? {};
    expect(Buffer.from(value ?? []).toString()).toBe(event);
  }
  leaving.abort();
});

test.each([
  ['until the connection closes', 'HTTP/1.0 200 OK\r\n\r\n', ['a\n', 'b\n']],
  ['of a known length', 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n', ['a\n', 'b\n']],
  ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', ['2\r\na\n\r\n', '2\r\nb\n\r\n0\r\n\r\n']],
])('a body %s arrives complete when its head arrives before it', async (_what, head, parts) => {
  await using fixture = await openFixture();
  const go = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using program = await startRawProgram((socket) => {
    const send = async () => {
      socket.write(head);
      for (const [i, part] of parts.entries()) {
        await go[i]!.promise;
        socket.write(part);
      }
      await go[2]!.promise;
      socket.end();
    };
    void send();
  });
  const { token } = await spawnReady(fixture, program);
  const answer = await fetch(`${fixture.url}/${token}/`);
  const reader = answer.body!.getReader();
  go[0]!.resolve();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('a\n');
  go[1]!.resolve();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('b\n');
  go[2]!.resolve();
  expect((await reader.read()).done).toBe(true);
});
