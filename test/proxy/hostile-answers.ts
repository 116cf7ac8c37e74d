/** Answers of hostile backends. `poison` must not reach a client as the answer to another request. */
import { shown } from './readings.ts';

/** A complete answer that a client must not receive for another request. */
const poison = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';

export interface HostileAnswer {
  readonly name: string;
  readonly bytes: string;
  /** Bytes that are sent after the end of the answer according to its head. */
  readonly late?: string;
  /** Whether it ends before its length. */
  readonly isCut?: boolean;
  /** Whether the backend closes the connection after the bytes. */
  readonly closes?: boolean;
}

function ok(lines: string, body: string): string {
  return `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n${body}`;
}

const chunks = '5\r\nhello\r\n0\r\n\r\n';

/** Heads whose length parsers read differently, each followed by a body that some parsers read as the next answer. */
const lengths = [
  'Content-Length: 5\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 5',
  'Content-Length: 5\r\nContent-Length: 6',
  'Content-Length: 5\r\nContent-Length: 5',
  'Content-Length: 5, 5',
  'Content-Length: 5, 6',
  'Content-Length: +5',
  'Content-Length: -5',
  'Content-Length: 0x5',
  'Content-Length: 5 5',
  'Content-Length: 5.0',
  'Content-Length: ',
  'Content-Length: x',
  'Content-Length: 18446744073709551621',
  'Content-Length: 5\x00',
  'Content-Length : 5',
  'Content-Length\t: 5',
  'Content-Length:\r\n 5',
  'X: y\r\n Content-Length: 5',
  'X: y\rContent-Length: 5',
  'X: y\nContent-Length: 5',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: chunked, gzip',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding:\r\n chunked',
  'Transfer-Encoding: \x0bchunked',
  'Connection: content-length\r\nContent-Length: 5',
  'Connection: transfer-encoding\r\nTransfer-Encoding: chunked',
];

/** Lines of a head that are not fields, or that a client could read as two fields. */
const lines = [
  'X: a\rSet-Cookie: forged=1',
  'X: a\r\rSet-Cookie: forged=1',
  'X: a\x00b',
  'X: a\x01b',
  'X: a\x7fb',
  'X: a\x0bb',
  'X\x00: y',
  'X Y: y',
  'X : y',
  ': y',
  'no colon',
  ' X: y',
  'X: y\r\n folded',
  'X(: y',
  'X\xff: y',
  'X: \xff\xfe',
  'X: \r\n\t',
  `X: ${'a'.repeat(300_000)}`,
  'X: y\r\n'.repeat(5_000).trimEnd(),
  'X-Verified-Username: mallory',
  'x-berth-error: gone',
  'Set-Cookie: berth_session=forged',
  'Set-Cookie: =__Host-berth-session=forged',
  'Connection: close, set-cookie\r\nSet-Cookie: a=b',
  'Upgrade: websocket\r\nConnection: upgrade',
  'Trailer: Content-Length',
  'Location: /\x80',
];

const statusLines = [
  'HTTP/1.1 200',
  'HTTP/1.1 200 ',
  'HTTP/1.1  200 OK',
  'HTTP/1.1 200 \x00',
  'HTTP/1.1 200 a\rb',
  'HTTP/1.1 200 \x7f\x1b[2J',
  'HTTP/1.1 2000 OK',
  'HTTP/1.1 20 OK',
  'HTTP/1.1 099 OK',
  'HTTP/1.1 000 OK',
  'HTTP/1.1 600 OK',
  'HTTP/1.1 999 OK',
  'HTTP/1.1 -20 OK',
  'HTTP/1.1 +200 OK',
  'HTTP/1.1 2e2 OK',
  'HTTP/1.1\t200 OK',
  'HTTP/1.0 200 OK',
  'HTTP/1.2 200 OK',
  'HTTP/2 200',
  'HTTP/2.0 200 OK',
  'HTTP/0.9 200 OK',
  'http/1.1 200 OK',
  'ICY 200 OK',
  'RTSP/1.0 200 OK',
  '200 OK',
  ' HTTP/1.1 200 OK',
  '\r\nHTTP/1.1 200 OK',
  '\x00HTTP/1.1 200 OK',
  'GET / HTTP/1.1',
  'X-Not-HTTP: y',
  '',
];

/** Chunked bodies whose end differs between parsers. */
const bodies = [
  '+5\r\nhello\r\n0\r\n\r\n',
  '0x5\r\nhello\r\n0\r\n\r\n',
  ' 5\r\nhello\r\n0\r\n\r\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '5;a="\r\n"\r\nhello\r\n0\r\n\r\n',
  '5\nhello\r\n0\r\n\r\n',
  '5\rhello\r\n0\r\n\r\n',
  '5\r\nhello0\r\n\r\n',
  '5\r\nhelloXX0\r\n\r\n',
  '5\r\nhello\n0\n\n',
  '10000000000000005\r\nhello\r\n0\r\n\r\n',
  '-5\r\nhello\r\n0\r\n\r\n',
  '\r\n5\r\nhello\r\n0\r\n\r\n',
  'g\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n0\r\nX : y\r\n\r\n',
  '5\r\nhello\r\n0\r\nX: a\x00b\r\n\r\n',
  '5\r\nhello\r\n0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nSet-Cookie: forged=1\r\n\r\n',
  '5\r\nhello\r\n0\r\nX-Verified-Username: mallory\r\n\r\n',
];

const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';

/** Every hostile answer. */
export const hostileAnswers: readonly HostileAnswer[] = [
  ...lengths.flatMap((each) => [
    { name: `a length: ${shown(each)}, a short body`, bytes: ok(each, `hello${poison}`) },
    { name: `a length: ${shown(each)}, chunks`, bytes: ok(each, `${chunks}${poison}`) },
  ]),
  ...lines.map((each) => ({
    name: `a line: ${shown(each).slice(0, 60)}`,
    bytes: ok(`${each}\r\nContent-Length: 5`, 'hello'),
  })),
  ...statusLines.map((each) => ({
    name: `a status line: ${shown(each)}`,
    bytes: `${each}\r\nContent-Length: 5\r\n\r\nhello${poison}`,
  })),
  ...bodies.map((each) => ({ name: `chunks: ${shown(each)}`, bytes: ok('Transfer-Encoding: chunked', each + poison) })),
  { name: 'more than the length', bytes: ok('Content-Length: 5', `hello${poison}`) },
  { name: 'more than the last chunk', bytes: ok('Transfer-Encoding: chunked', chunks + poison) },
  { name: 'more than the length, late', bytes: ok('Content-Length: 5', 'hello'), late: poison },
  { name: 'more than the last chunk, late', bytes: ok('Transfer-Encoding: chunked', chunks), late: poison },
  { name: 'an empty line, late', bytes: ok('Content-Length: 5', 'hello'), late: '\r\n' },
  { name: 'half an answer, late', bytes: ok('Content-Length: 5', 'hello'), late: 'HTTP/1.1 200 OK\r\nX-Poison: ' },
  { name: 'an interim answer, late', bytes: ok('Content-Length: 5', 'hello'), late: interim },
  { name: 'a body with 204', bytes: `HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\npoison${poison}` },
  { name: 'chunks with 204', bytes: `HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}${poison}` },
  { name: 'a body with 204, late', bytes: 'HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n', late: poison },
  { name: 'a body with 304', bytes: `HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\npoison${poison}` },
  { name: 'a body with 304, late', bytes: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n', late: poison },
  { name: 'a body with 100', bytes: `HTTP/1.1 100 Continue\r\nContent-Length: 6\r\n\r\npoison${poison}` },
  { name: 'interim answers without end', bytes: interim.repeat(1_000) + poison },
  { name: 'many interim answers', bytes: interim.repeat(50) + ok('Content-Length: 5', 'hello') },
  { name: 'only interim answers', bytes: interim.repeat(3), closes: true },
  { name: 'an upgrade that was not requested', bytes: `HTTP/1.1 101 Switching Protocols\r\n\r\n${poison}` },
  {
    name: 'an upgrade to WebSocket that was not requested',
    bytes: `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n${poison}`,
  },
  { name: 'less than the length', bytes: ok('Content-Length: 50', 'hello'), closes: true, isCut: true },
  {
    name: 'chunks without a last one',
    bytes: ok('Transfer-Encoding: chunked', '5\r\nhello\r\n'),
    closes: true,
    isCut: true,
  },
  { name: 'half a chunk', bytes: ok('Transfer-Encoding: chunked', '50\r\nhello'), closes: true, isCut: true },
  { name: 'half a head', bytes: 'HTTP/1.1 200 OK\r\nContent-Len', closes: true },
  { name: 'no answer', bytes: '', closes: true },
  { name: 'an answer until the connection ends', bytes: ok('X: y', `hello${poison}`), closes: true },
  { name: 'two answers', bytes: ok('Content-Length: 5', 'hello') + poison, closes: true },
  { name: 'lines that end in a bare LF', bytes: 'HTTP/1.1 200 OK\nContent-Length: 5\n\nhello' },
];
