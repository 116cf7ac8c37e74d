/** Streams of requests, most with a few deviations that parsers read differently. `@` stands for the path of the session. */
import type { Random } from '../fuzz/random.ts';

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'];

/** Lines about the length of a body, `#`, that parsers read differently, or reject. */
const oddLengths = [
  'content-length:#',
  'Content-Length:  # ',
  'Content-Length: #\t',
  'Content-Length: 0#',
  'Content-Length: +#',
  'Content-Length: #, #',
  'Content-Length: #\r\nContent-Length: #',
  'Content-Length: #\r\nContent-Length: 0',
  'Content-Length: 0',
  'Content-Length: 5',
  'Content-Length: #\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: #',
  'Transfer-Encoding: identity\r\nContent-Length: #',
  'Content-Length : #',
  'Content_Length: #',
  'Content-Length\x00: #',
  'Content-Length:\r\n #',
  'X: y\r\n Content-Length: #',
  'X: y\nContent-Length: #',
  'X: y\rContent-Length: #',
];

/** Lines about chunks that parsers read differently, or reject. */
const oddCodings = [
  'transfer-encoding:CHUNKED',
  'Transfer-Encoding: \tchunked ',
  'Transfer-Encoding: , chunked',
  'Transfer-Encoding: chunked,',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: chunked;a=b',
  'Transfer-Encoding : chunked',
  'Transfer_Encoding: chunked',
  'Transfer-Encoding: \x0bchunked',
  'Transfer-Encoding: chunked\x00',
  'Transfer-Encoding:\r\n chunked',
  'X: y\r\n Transfer-Encoding: chunked',
  'X: y\nTransfer-Encoding: chunked',
  'X: y\rTransfer-Encoding: chunked',
];

/** Lines that do not affect the length of a body. */
const others = [
  'X: y',
  'Connection: keep-alive',
  'Connection: close, x',
  'Connection: content-length',
  'Connection: transfer-encoding, host',
  'TE: trailers',
  'Trailer: X-Sum',
  'Keep-Alive: timeout=5',
  'X: caf\xe9',
  'X:',
  'Cookie: a=b; c=d',
  'Referer: http://a/b',
  'Host: b',
  'Expect: 100-continue',
];

const bodies = ['', 'a', 'hello', '0\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n', 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'];

/** Unusual forms of the size of a chunk, `#`. */
const oddSizes = [
  '0#',
  '00000000000#',
  '#;a=b',
  '# ; a="b;c"',
  '# ',
  '#\t',
  ' #',
  '+#',
  '0x#',
  '1000000000000000#',
  '#;\n',
  '#\r',
  '#;a="\n"',
];

const oddEnds = ['\n', '\r', '\n\r', '\r\r\n', '\r\n\r\n', ''];

const oddTrailers = [
  'X-Sum: 1\r\n',
  'Content-Length: 3\r\n',
  'Host: b\r\n',
  'X : 1\r\n',
  ' X: 1\r\n',
  'X\r\n',
  'X: 1\n',
];

const oddTargets = ['@/a b', '@/\x00', '@/\x80', '@', '*', '@/#a', '@//', '@/%00'];

const oddVersions = ['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'HTTP/1.1 ', ''];

/** Bytes that parsers treat differently. */
const confusing = [
  '\0',
  '\x01',
  '\x0b',
  '\x7f',
  '\x80',
  '\r',
  '\n',
  '\r\n',
  '\n\n',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '0',
  '-',
  '+',
  '',
];

/** Two to four requests. The last one asks the server to close the connection. */
export function requestStream(random: Random): string {
  let bytes = '';
  for (let i = 1 + random.below(3); i > 0; i -= 1) bytes += new RequestWriter(random).request(i);
  if (random.below(5) === 0) bytes = changed(bytes, random);
  return `${bytes}GET @/last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
}

/** The bytes in one to six pieces. */
export function piecesOf(bytes: string, random: Random): string[] {
  const cuts = Array.from({ length: random.pick([0, 0, 1, 1, 2, 5]) }, () => random.below(bytes.length));
  const ends = [...cuts.toSorted((one, other) => one - other), bytes.length];
  return ends.map((end, i) => bytes.slice(ends[i - 1] ?? 0, end)).filter(Boolean);
}

/** One in this number of choices is odd. A request has about ten choices. */
const oddOneIn = 15;

const oddEndOneIn = 150;

class RequestWriter {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  request(index: number): string {
    const random = this.#random;
    const body = random.pick(bodies);
    const isChunked = random.below(2) === 0;
    const framing = isChunked
      ? this.#either('Transfer-Encoding: chunked', oddCodings)
      : this.#either('Content-Length: #', oddLengths);
    const target = this.#either(`@/${index}`, oddTargets);
    const start = `${random.pick(methods)} ${target} ${this.#either('HTTP/1.1', oddVersions)}`;
    const more = Array.from({ length: random.below(3) }, () => this.#either('X: y', others));
    const lines = random.shuffled([this.#either('Host: a', ['host:a', 'Host: ', 'Host : a']), framing, ...more]);
    const head = [start, ...lines].map((line) => line + this.#end()).join('') + this.#end();
    return head.replaceAll('#', String(body.length)) + (isChunked ? this.#chunks(body) : body);
  }

  #chunks(body: string): string {
    const at = this.#random.below(body.length + 1);
    const parts = [body.slice(0, at), body.slice(at)].filter(Boolean);
    const chunks = parts.map((part) => this.#size(part.length) + this.#end() + part + this.#end());
    return `${chunks.join('')}${this.#size(0)}${this.#end()}${this.#either('', oddTrailers)}${this.#end()}`;
  }

  #size(size: number): string {
    return this.#either('#', oddSizes).replace('#', size.toString(16));
  }

  #end(): string {
    return this.#random.below(oddEndOneIn) === 0 ? this.#random.pick(oddEnds) : '\r\n';
  }

  #either(usual: string, odd: readonly string[]): string {
    return this.#random.below(oddOneIn) === 0 ? this.#random.pick(odd) : usual;
  }
}

function changed(bytes: string, random: Random): string {
  const at = random.below(bytes.length);
  return bytes.slice(0, at) + random.pick(confusing) + bytes.slice(at + random.below(2));
}
