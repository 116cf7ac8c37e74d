/** Requests that parsers read differently, and the only readings that may reach a backend. */
import { shown } from './readings.ts';
import type { Reading } from './readings.ts';

export interface RequestCase {
  readonly name: string;
  /** The bytes that the client sends. `@` stands for the path of the session. */
  readonly bytes: string;
  /** The requests that reach the backend. */
  readonly readings: readonly Reading[];
  /** Whether the proxy closes the connection, as most cases request. Default: yes. */
  readonly closes?: boolean;
  /** Whether the proxy may reject the request: it has one reading, but not all parsers accept it. */
  readonly mayReject?: boolean;
}

const next = 'GET @/next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** A request in the body of another one. */
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: b\r\nx-verified-username: root\r\n\r\n';

const nextReading: Reading = ['GET /next', ''];

const chunks = '3\r\nabc\r\n0\r\n\r\n';

function rejected(group: string, all: readonly string[], bytesOf: (each: string) => string): RequestCase[] {
  return all.map((each) => ({ name: `${group}: ${shown(each)}`, bytes: bytesOf(each) + next, readings: [] }));
}

const post = (lines: string, body: string) => `POST @/x HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n${body}`;

const get = (lines: string) => `GET @/x HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n`;

/** Contradictory fields about the length of a body. */
const twoLengths = [
  'Content-Length: 3\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 3',
  'Transfer-Encoding: chunked\r\nContent-Length: 0',
  'content-length: 13\r\ntransfer-encoding: CHUNKED',
  'Content-Length: 3\r\nContent-Length: 4',
  'Content-Length: 0\r\nContent-Length: 3',
  'Content-Length: 3\r\nContent-length: 0',
  'Content-Length: 3, 4',
  'Content-Length: 3\r\nX: y\r\nContent-Length: 13',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
  'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip',
];

/** Lengths that are not decimal numbers. */
const lengths = [
  '+3',
  '-3',
  '-0',
  '0x3',
  '3.0',
  '3e0',
  '3 3',
  '3,',
  ',3',
  '3;3',
  '"3"',
  '',
  'abc',
  '3abc',
  '\xd9\xa3',
  '3\x00',
  '\x003',
  '3\x0b',
  '\x0c3',
  '3\xa0',
  '18446744073709551616',
  '18446744073709551619',
  '99999999999999999999999999',
  '0000000000000000000000000000000000003x',
  '3_0',
];

/** Transfer codings other than the single coding `chunked`. */
const codings = [
  'xchunked',
  'chunkedx',
  'chunked, chunked',
  'chunked, gzip',
  'gzip, chunked',
  'gzip',
  'identity',
  'identity, chunked',
  'chunked, identity',
  'chunked;q=1',
  'chunked; a=b',
  '"chunked"',
  'chun ked',
  'chunked\x00',
  '\x0bchunked',
  'chunked\x0b',
  'chunked\x0c',
  '\xa0chunked',
  'chunked\x7f',
  'x chunked',
  'chunked x',
  '',
  'cow',
  '\xc5\xbfhunked',
  'chunKed\x85',
];

/** Lines of a head that are not fields, or that look like two fields. */
const lines = [
  'Content-Length : 3',
  'Content-Length\t: 3',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding\t: chunked',
  'Transfer-Encoding\x0b: chunked',
  'Transfer-Encoding\x00: chunked',
  '\x00Transfer-Encoding: chunked',
  ' Transfer-Encoding: chunked',
  '\tContent-Length: 3',
  'X: y\r\n Content-Length: 3',
  'X: y\r\n\tTransfer-Encoding: chunked',
  'Transfer-Encoding:\r\n chunked',
  'Transfer-Encoding: chunked\r\n ',
  'Content-Length:\r\n 3',
  'Content-Length: \r\n\t3',
  'X: y\nContent-Length: 3',
  'X: y\rContent-Length: 3',
  'X: y\n\rContent-Length: 3',
  'X: y\r\rContent-Length: 3',
  'X: y\r\x00\nContent-Length: 3',
  'X: y\nTransfer-Encoding: chunked',
  'X: y\rTransfer-Encoding: chunked',
  'X: y\x00Transfer-Encoding: chunked',
  'X: a\x00b',
  'X: a\x01b',
  'X: a\x08b',
  'X: a\x1fb',
  'X: a\x7fb',
  'X: a\rb',
  'X: a\r',
  'X\x00: y',
  'X\x7f: y',
  'X\xff: y',
  'X(: y',
  'X,Y: y',
  'X/Y: y',
  'X@Y: y',
  'X{: y',
  '"X": y',
  'X Y: y',
  ': y',
  ':',
  ' : y',
  'Host',
  'Content-Length',
  'GET @/smuggled HTTP/1.1',
  'X\r\nY: z',
  'Host: b',
  'host: a',
  'HOST: a\r\nhost: b',
];

/** Invalid request lines. */
const requestLines = [
  'GET @/x HTTP/1.1 ',
  'GET @/x HTTP/1.1\t',
  'GET\t@/x HTTP/1.1',
  'GET @/x\tHTTP/1.1',
  ' GET @/x HTTP/1.1',
  '\tGET @/x HTTP/1.1',
  '\x00GET @/x HTTP/1.1',
  'GET\x00@/x HTTP/1.1',
  'GET @/x\x00 HTTP/1.1',
  'GET @/x\x01 HTTP/1.1',
  'GET @/x\x7f HTTP/1.1',
  'GET @/x\x0b HTTP/1.1',
  'GET @/x\rHTTP/1.1',
  'GET @/x y HTTP/1.1',
  'GET @/x HTTP/1.1 HTTP/1.1',
  'GET @/x HTTP/1.1\r\r',
  'GET @/x HTTP/1.1\x00',
  'GET @/x HTTP/1.12',
  'GET @/x HTTP/11',
  'GET @/x HTTP/1.',
  'GET @/x HTTP/1,1',
  'GET @/x HTTP/2.0',
  'GET @/x HTTP/2',
  'GET @/x HTTP/3.1',
  'GET @/x HTTP/0.9',
  'GET @/x HTTP/1.2',
  'GET @/x HTTP/x.1',
  'GET @/x http/1.1',
  'GET @/x HTTPS/1.1',
  'GET @/x ICY/1.1',
  'GET @/x XHTTP/1.1',
  'GET @/x',
  'GET',
  '',
  'G@T @/x HTTP/1.1',
  'GE(T @/x HTTP/1.1',
  'GET: @/x HTTP/1.1',
  'X\xff @/x HTTP/1.1',
  'PRI * HTTP/2.0',
  'CONNECT a:80 HTTP/1.1',
  'CONNECT @/x HTTP/1.1',
  'GET x HTTP/1.1',
  'GET \\x HTTP/1.1',
  'GET ?@/x HTTP/1.1',
  'GET #@/x HTTP/1.1',
  'GET http://u@a@/x HTTP/1.1',
  'GET http://a,b@/x HTTP/1.1',
  'GET http://@/x HTTP/1.1',
  'GET ftp://a@/x HTTP/1.1',
  'GET http://a@/x#y HTTP/1.1',
];

/** Sizes of a first chunk of three bytes that parsers read differently, or reject. */
const sizes = [
  '+3',
  '-3',
  '0x3',
  '3 3',
  ' 3',
  '\t3',
  '3\x003',
  '3\x00',
  '\x003',
  '',
  ' ',
  'g',
  '3g',
  '3,3',
  '3\x0b',
  '3\x0c',
  '3\x7f',
  '3\xa0',
  '3_',
  '0_3',
  '3.0',
  '10000000000000003',
  '100000000000000000003',
  '3\n',
  '3\r',
  '3;a=b\n',
  '3;a="\n"',
  '3;a="\r\n"',
  '3;a=\x00',
  '3;\x01',
  '3;a\rb',
];

/** Chunked bodies whose end differs between parsers. */
const bodies = [
  '3\nabc\r\n0\r\n\r\n',
  '3\r\nabc\n0\r\n\r\n',
  '3\r\nabc\r0\r\n\r\n',
  '3\r\nabc0\r\n\r\n',
  '3\r\nabcX\r\n0\r\n\r\n',
  '3\r\nabcXX0\r\n\r\n',
  '3\r\nabc\r\n0\n\n',
  '3\r\nabc\r\n0\n\r\n',
  '3\r\nabc\r\n0\r\r\n\r\n',
  '3\r\nabc\r\n0\r\nX: y\n\r\n',
  '3\r\nabc\r\n0\r\nX: y\r\r\n',
  '3\r\nabc\r\n0\r\nX : y\r\n\r\n',
  '3\r\nabc\r\n0\r\n X: y\r\n\r\n',
  '3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n',
  '3\r\nabc\r\n0\r\nX: a\x00b\r\n\r\n',
  '3\r\nabc\r\n0\r\nX\r\n\r\n',
  '3\r\nabc\r\n0\r\nGET @/smuggled HTTP/1.1\r\n\r\n',
  '3\r\nabc\r\n-0\r\n\r\n',
  '3\r\nabc\r\n0x0\r\n\r\n',
  '\r\n3\r\nabc\r\n0\r\n\r\n',
  '3\r\n\r\nabc\r\n0\r\n\r\n',
];

const rejections: readonly RequestCase[] = [
  ...rejected('two lengths', twoLengths, (each) => post(each, chunks)),
  ...rejected('a length', lengths, (each) => post(`Content-Length: ${each}`, 'abc')),
  ...rejected('a coding', codings, (each) => post(`Transfer-Encoding: ${each}`, chunks)),
  ...rejected('a line', lines, (each) => get(each)),
  ...rejected('a first line', lines.slice(0, 30), (each) => `GET @/x HTTP/1.1\r\n${each}\r\nHost: a\r\n\r\n`),
  ...rejected('a request line', requestLines.filter(Boolean), (each) => `${each}\r\nHost: a\r\n\r\n`),
  ...rejected('a chunk', sizes, (each) => post('Transfer-Encoding: chunked', `${each}\r\nabc\r\n0\r\n\r\n`)),
  ...rejected('chunks', bodies, (each) => post('Transfer-Encoding: chunked', each)),
  ...rejected('a version with chunks', ['1.0'], () => {
    return `POST @/x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;
  }),
  ...rejected('without Host', ['1.1'], () => 'GET @/x HTTP/1.1\r\n\r\n'),
];

function read(name: string, bytes: string, readings: readonly Reading[], mayReject = false): RequestCase {
  return { name, bytes: bytes + next, readings: [...readings, nextReading], mayReject };
}

/** Requests with one reading. If `mayReject` is true, not all servers accept them. */
const readable: readonly RequestCase[] = [
  read('a plain request', get('X: y'), [['GET /x', '']]),
  read('a length', post('Content-Length: 3', 'abc'), [['POST /x', 'abc']]),
  read('a length with spaces around it', post('Content-Length: \t 3\t ', 'abc'), [['POST /x', 'abc']]),
  read('a length with zeros before it', post('Content-Length: 003', 'abc'), [['POST /x', 'abc']], true),
  read('a repeated length', post('Content-Length: 3\r\nContent-Length: 3', 'abc'), [['POST /x', 'abc']], true),
  read('the same length in a list', post('Content-Length: 3, 3', 'abc'), [['POST /x', 'abc']], true),
  read('chunks', post('Transfer-Encoding: chunked', chunks), [['POST /x', 'abc']]),
  read('chunks, in capitals', post('TRANSFER-ENCODING: CHUNKED', chunks), [['POST /x', 'abc']]),
  read('chunks, with spaces', post('Transfer-Encoding: \t chunked \t', chunks), [['POST /x', 'abc']], true),
  read('chunks, with an empty list element', post('Transfer-Encoding: , chunked', chunks), [['POST /x', 'abc']], true),
  read('chunks, with an empty last element', post('Transfer-Encoding: chunked,', chunks), [['POST /x', 'abc']], true),
  read(
    'a size with zeros',
    post('Transfer-Encoding: chunked', '0003\r\nabc\r\n000\r\n\r\n'),
    [['POST /x', 'abc']],
    true,
  ),
  read('a size in capitals', post('Transfer-Encoding: chunked', `A\r\n${'a'.repeat(10)}\r\n0\r\n\r\n`), [
    ['POST /x', 'a'.repeat(10)],
  ]),
  read(
    'an extension',
    post('Transfer-Encoding: chunked', '3;a=b\r\nabc\r\n0;c="d;e"\r\n\r\n'),
    [['POST /x', 'abc']],
    true,
  ),
  read(
    'a space after a size',
    post('Transfer-Encoding: chunked', '3 \r\nabc\r\n0\r\n\r\n'),
    [['POST /x', 'abc']],
    true,
  ),
  read('many chunks', post('Transfer-Encoding: chunked', `${'1\r\na\r\n'.repeat(50)}0\r\n\r\n`), [
    ['POST /x', 'a'.repeat(50)],
  ]),
  read('a body that looks like chunks', post(`Content-Length: ${chunks.length}`, chunks), [['POST /x', chunks]]),
  read('a body that looks like a request', post(`Content-Length: ${smuggled.length}`, smuggled), [
    ['POST /x', smuggled],
  ]),
  read('chunks that look like a request', post('Transfer-Encoding: chunked', '5\r\nGET /\r\n0\r\n\r\n'), [
    ['POST /x', 'GET /'],
  ]),
  read('a GET with a body', get('Content-Length: 3') + 'abc', [['GET /x', 'abc']]),
  read('a DELETE with chunks', `DELETE @/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`, [
    ['DELETE /x', 'abc'],
  ]),
  read('an OPTIONS with chunks', `OPTIONS @/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`, [
    ['OPTIONS /x', 'abc'],
  ]),
  read('a POST without a body', 'POST @/x HTTP/1.1\r\nHost: a\r\n\r\n', [['POST /x', '']]),
  read('empty lines before a request', `\r\n\r\n${get('X: y')}`, [['GET /x', '']], true),
  read('empty lines after a body', `${post('Content-Length: 3', 'abc')}\r\n`, [['POST /x', 'abc']], true),
  read(
    'names that resemble the fields of a length',
    get('Content_Length: 3\r\nTransfer_Encoding: chunked'),
    [['GET /x', '']],
    true,
  ),
  read(
    'a length as a connection option',
    post('Connection: content-length\r\nContent-Length: 3', 'abc'),
    [['POST /x', 'abc']],
    true,
  ),
  read(
    'chunks as a connection option',
    post('Connection: transfer-encoding\r\nTransfer-Encoding: chunked', chunks),
    [['POST /x', 'abc']],
    true,
  ),
  read('Host as a connection option', get('Connection: host'), [['GET /x', '']], true),
  read('bytes above 127 in a value', get('X: \x80\xff'), [['GET /x', '']], true),
  read('an empty value', get('X:'), [['GET /x', '']]),
  read('a tab in a value', get('X: a\tb'), [['GET /x', '']]),
  read('two spaces after the method', 'GET  @/x HTTP/1.1\r\nHost: a\r\n\r\n', [['GET /x', '']], true),
  read('two spaces after the path', 'GET @/x  HTTP/1.1\r\nHost: a\r\n\r\n', [['GET /x', '']], true),
  read('Expect with a body', post('Expect: 100-continue\r\nContent-Length: 3', 'abc'), [['POST /x', 'abc']]),
  read('Expect without a body', get('Expect: 100-continue'), [['GET /x', '']]),
  read('another expectation', post('Expect: a miracle\r\nContent-Length: 3', 'abc'), [['POST /x', 'abc']], true),
  read(
    'several requests',
    get('X: y') + post('Content-Length: 3', 'abc') + post('Transfer-Encoding: chunked', chunks),
    [
      ['GET /x', ''],
      ['POST /x', 'abc'],
      ['POST /x', 'abc'],
    ],
  ),
  read('an uncommon method', 'M-SEARCH @/x HTTP/1.1\r\nHost: a\r\n\r\n', [['M-SEARCH /x', '']], true),
  read(
    'a path with all kinds of characters',
    'GET @/a/../b/./%2e%2e//c%2Fd%00%0d%0a\\e;f=\'[]{}|^`"<>?g=#h HTTP/1.1\r\nHost: a\r\n\r\n',
    [['GET /a/../b/./%2e%2e//c%2Fd%00%0d%0a\\e;f=\'[]{}|^`"<>?g=#h', '']],
    true,
  ),
  {
    name: 'nothing is read after Connection: close',
    bytes: `${get('Connection: close')}${next}`,
    readings: [['GET /x', '']],
    mayReject: true,
  },
  {
    name: 'nothing is read after HTTP/1.0',
    bytes: `GET @/x HTTP/1.0\r\nHost: a\r\n\r\n${next}`,
    readings: [['GET /x', '']],
    mayReject: true,
  },
  ...rejected('a body in HTTP/1.0', ['GET', 'HEAD', 'DELETE'], (method) => {
    return `${method} @/x HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc`;
  }),
  {
    name: 'a request after a bad one',
    bytes: `${get('X: y')}${get('X : y')}${next}`,
    readings: [['GET /x', '']],
    mayReject: true,
  },
  {
    name: 'an Upgrade with a body',
    bytes: post('Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3', 'abc'),
    closes: false,
    readings: [['POST /x', 'abc']],
    mayReject: true,
  },
  {
    name: 'an Upgrade to HTTP/2',
    bytes: get('Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA'),
    closes: false,
    readings: [['GET /x', '']],
  },
  { name: 'the server as a whole', bytes: `OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n${next}`, readings: [nextReading] },
  { name: 'an asterisk as the path', bytes: `GET * HTTP/1.1\r\nHost: a\r\n\r\n${next}`, readings: [nextReading] },
  { name: 'TRACE', bytes: `TRACE @/x HTTP/1.1\r\nHost: a\r\n\r\n${next}`, readings: [] },
  // Node's parser reads it as HTTP/1.0.
  {
    name: 'RTSP',
    bytes: 'GET @/x RTSP/1.0\r\nHost: a\r\n\r\n',
    closes: false,
    readings: [['GET /x', '']],
    mayReject: true,
  },
  // A size of 64 bits is valid, and its chunk never ends.
  ...['8000000000000003', 'ffffffffffffffff'].map((size) => ({
    name: `a chunk of ${size}`,
    bytes: `${post('Transfer-Encoding: chunked', `${size}\r\nabc\r\n0\r\n\r\n`)}${next}`,
    readings: [],
    closes: false,
  })),
  { name: 'a body that ends early', bytes: post('Content-Length: 30', 'abc'), readings: [], closes: false },
  { name: 'chunks that end early', bytes: post('Transfer-Encoding: chunked', '5\r\nabc'), readings: [], closes: false },
  {
    name: 'chunks without a last one',
    bytes: post('Transfer-Encoding: chunked', '3\r\nabc\r\n'),
    readings: [],
    closes: false,
  },
  { name: 'a head that ends early', bytes: 'GET @/x HTTP/1.1\r\nHost: a\r\n', readings: [], closes: false },
];

/** All cases. */
export const requestCases: readonly RequestCase[] = [...rejections, ...readable];
