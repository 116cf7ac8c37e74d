import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exchangeBytes, openFixture, spawnReady, startRawProgram } from '../testing/fixture.ts';
import type { Fixture, RawProgram } from '../testing/fixture.ts';
import { maxInterimAnswers } from './answer-limits.ts';

let fixture: Fixture;
beforeAll(async () => void (fixture = await openFixture()));
afterAll(() => fixture[Symbol.asyncDispose]());

/** The answer to a plain request or an upgrade if the backend sends these bytes, in one piece or byte by byte. */
async function answered(answer: string, { bytewise = false, upgrade = false } = {}): Promise<string> {
  await using program = await startRawProgram((socket) => {
    socket.removeAllListeners('data').resume();
    if (bytewise) void trickle(socket, answer);
    else socket.end(answer, 'latin1');
  });
  return await ask(program, upgrade);
}

async function trickle(socket: Socket, answer: string): Promise<void> {
  socket.setNoDelay();
  for (const byte of answer) {
    socket.write(byte, 'latin1');
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.end();
}

async function ask(program: RawProgram, upgrade: boolean): Promise<string> {
  const { token } = await spawnReady(fixture, program);
  const connection = upgrade ? 'Upgrade\r\nUpgrade: echo' : 'close';
  return await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: ${connection}\r\n\r\n`);
}

const chunks = '2\r\nhi\r\n0\r\n\r\n';

test.each([
  ['all header lines', 'HTTP/1.0 200 OK\nContent-Type: text/html\nX-A:\nX-B: c\nContent-Length: 2\n\nhi'],
  ['the status line', 'HTTP/1.1 200 OK\nX-B: c\r\nContent-Length: 2\r\n\r\nhi'],
  ['one header line', 'HTTP/1.1 200 OK\r\nX-B: c\nContent-Length: 2\r\n\r\nhi'],
  ['the last header line', 'HTTP/1.1 200 OK\r\nX-B: c\r\nContent-Length: 2\n\r\nhi'],
  ['the empty line', 'HTTP/1.1 200 OK\r\nX-B: c\r\nContent-Length: 2\r\n\nhi'],
  ['a head without a length', 'HTTP/1.1 200\nX-B: c\n\nhi'],
  ['an interim answer', 'HTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.1 200 OK\nX-B: c\nContent-Length: 2\n\nhi'],
  ['a head before chunks', `HTTP/1.1 200 OK\nX-B: c\nTransfer-Encoding: chunked\n\n${chunks}`],
])('%s of a backend may end in a bare LF, and the client gets CRLF', async (_name, answer) => {
  for (const way of [{}, { bytewise: true }, { upgrade: true }]) {
    const got = await answered(answer, way);
    expect(got).toMatch(/^(?:HTTP\/1\.1 103 Early Hints\r\nLink: x\r\n\r\n)?HTTP\/1\.1 200 OK\r\n/);
    expect(got).toContain('\r\nX-B: c\r\n');
    expect(got).toMatch(/hi|1\r\nh\r\n1\r\ni/);
    const head = got.slice(0, got.indexOf('\r\n\r\n'));
    expect(head).not.toMatch(/(?<!\r)\n/);
  }
});

test('a trailer may end in a bare LF', async () => {
  const head = 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nTrailer: X-Sum\n\n';
  expect(await answered(`${head}2\r\nhi\r\n0\r\nX-Sum: 1\n\n`)).toMatch(/\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n$/);
});

test('a backend that agrees to an upgrade may end its header lines in a bare LF', async () => {
  const got = await answered('HTTP/1.1 101 Switching\nConnection: upgrade\nUpgrade: echo\nX-A: b\n\nhi', {
    upgrade: true,
  });
  expect(got).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n(?:[^\r\n]+\r\n)*X-A: b\r\n\r\nhi$/);
});

const ambiguous: readonly [string, string][] = [
  ['a length and chunks', `Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`],
  ['chunks and a length', `Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n${chunks}`],
  ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!'],
  ['the same length twice', 'Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi'],
  ['a list of lengths', 'Content-Length: 2, 2\r\n\r\nhi'],
  ['a negative length', 'Content-Length: -2\r\n\r\nhi'],
  ['a length with a sign', 'Content-Length: +2\r\n\r\nhi'],
  ['a length in hex', 'Content-Length: 0x2\r\n\r\nhi'],
  ['a length with a blank', 'Content-Length: 1 2\r\n\r\nhi'],
  ['a length of 30 digits', `Content-Length: ${'9'.repeat(30)}\r\n\r\nhi`],
  ['a blank before the colon', 'Content-Length : 2\r\n\r\nhi'],
  ['a tab before the colon', 'Content-Length\t: 2\r\n\r\nhi'],
  ['a folded line', 'X-A: b\r\n c\r\nContent-Length: 2\r\n\r\nhi'],
  ['a folded line after a tab', 'X-A: b\r\n\tc\r\nContent-Length: 2\r\n\r\nhi'],
  ['a blank before the first header', ' X-A: b\r\nContent-Length: 2\r\n\r\nhi'],
  ['a CR in a value', 'X-A: b\rEvil: c\r\nContent-Length: 2\r\n\r\nhi'],
  ['two CRs', 'X-A: b\r\r\nContent-Length: 2\r\n\r\nhi'],
  ['a NUL in a value', 'X-A: b\0c\r\nContent-Length: 2\r\n\r\nhi'],
  ['a control character in a value', 'X-A: b\x01c\r\nContent-Length: 2\r\n\r\nhi'],
  ['a DEL in a value', 'X-A: b\x7fc\r\nContent-Length: 2\r\n\r\nhi'],
  ['a NUL in a name', 'X\0A: b\r\nContent-Length: 2\r\n\r\nhi'],
  ['a bracket in a name', 'X(A: b\r\nContent-Length: 2\r\n\r\nhi'],
  ['Latin-1 in a name', 'X\xe9: b\r\nContent-Length: 2\r\n\r\nhi'],
  ['a line without a colon', 'X-A\r\nContent-Length: 2\r\n\r\nhi'],
  ['an empty name', ': b\r\nContent-Length: 2\r\n\r\nhi'],
];

test.each([
  ...ambiguous.map(([name, rest]): [string, string] => [name, `HTTP/1.1 200 OK\r\n${rest}`]),
  ...ambiguous.slice(0, 15).map(([name, rest]): [string, string] => {
    const end = rest.indexOf('\r\n\r\n') + 4;
    return [
      `${name}, by bare LFs`,
      `HTTP/1.1 200 OK\n${rest.slice(0, end).replaceAll('\r\n', '\n')}${rest.slice(end)}`,
    ];
  }),
  ['no status line', 'hello'],
  ['another protocol', 'HTTQ/1.1 200 OK\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['no status', 'HTTP/1.1  OK\r\n\r\n'],
  ['status 0', 'HTTP/1.1 000 OK\r\n\r\n'],
  ['an upgrade that the request did not ask for', 'HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
  ['a head without an end', `HTTP/1.1 200 OK\r\nX-A: ${'b'.repeat(300_000)}`],
  ['a line feed before the head', '\0\nHTTP/1.1 200 OK\r\n\r\n'],
  ['half a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['nothing', ''],
])('an answer with %s is refused', async (_name, answer) => {
  for (const way of [{}, { bytewise: answer.length < 1_000 }]) {
    expect(await answered(answer, way)).toMatch(
      /^HTTP\/1\.1 502 Bad Gateway\r\n[^]*x-berth-error: backend-unreachable\r\n/,
    );
  }
});

test.each([
  ['a chunk that is longer than it says', '2\r\nhiX\r\n0\r\n\r\n'],
  ['an invalid chunk size', 'zz\r\nhi\r\n0\r\n\r\n'],
  ['a chunk size with a blank', '2 \r\nhi\r\n0\r\n\r\n'],
  ['a chunk size that is too large', `${'f'.repeat(20)}\r\nhi`],
  ['a chunk size that ends in a bare LF', '2\nhi\r\n0\r\n\r\n'],
  ['no last chunk', '2\r\nhi\r\n'],
])('an answer with %s never looks complete', async (_name, body) => {
  for (const newline of ['\r\n', '\n']) {
    const head = ['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', ''].join(newline);
    expect(await answered(head + body)).not.toMatch(/\r\n0\r\n\r\n$/);
  }
});

test.each([false, true])(
  'a backend that sends endless interim answers is disconnected (upgrade: %s)',
  async (upgrade) => {
    const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
    let sent = 0;
    await using program = await startRawProgram((socket) => {
      const more = () => {
        if (socket.destroyed) return;
        sent += 10;
        socket.write(early.repeat(10), more);
      };
      more();
    });
    expect(await ask(program, upgrade)).toMatch(/^(?:HTTP\/1\.1 103 Early Hints\r\n[^]*\r\n\r\n)?HTTP\/1\.1 502 /);
    expect(sent).toBeGreaterThanOrEqual(maxInterimAnswers);
  },
);
