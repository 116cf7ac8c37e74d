/** The exchanges that the fuzz test breaks off: what a client sends, and what a backend answers. */
import type { Plan } from './plan.ts';
import type { Random } from './random.ts';

/** An exchange by way of the proxy. */
export interface ProxiedExchange {
  readonly name: string;
  readonly method: string;
  /** Header lines beside `Host`. */
  readonly lines: readonly string[];
  /** What the client sends after its head. */
  readonly body: string;
  readonly answer: string;
  readonly echoes: boolean;
}

const close = ['Connection: close'];
const chunks = '5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n';
const upgrade = ['Connection: Upgrade', 'Upgrade: echo'];

/** Byte by byte, both sides leave each of these. */
export const exchanges: readonly ProxiedExchange[] = [
  {
    name: 'plain',
    method: 'GET',
    lines: close,
    body: '',
    answer: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    echoes: false,
  },
  {
    name: 'body and stream',
    method: 'POST',
    lines: [...close, 'Transfer-Encoding: chunked'],
    body: chunks,
    answer: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n${chunks.slice(0, -2)}X-Sum: 1\r\n\r\n`,
    echoes: false,
  },
  {
    name: 'until close, after an interim answer',
    method: 'GET',
    lines: close,
    body: '',
    answer: 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.0 200 OK\nContent-Type: text/plain\n\nhello',
    echoes: false,
  },
  {
    name: 'upgrade',
    method: 'GET',
    lines: upgrade,
    body: 'said at once',
    answer: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nwelcome',
    echoes: true,
  },
  {
    name: 'refused upgrade',
    method: 'GET',
    lines: upgrade,
    body: '',
    answer: 'HTTP/1.1 426 No\r\nContent-Length: 2\r\n\r\nno',
    echoes: false,
  },
];

/** The bytes of a request for an exchange. What the backend is to do stands in the path. */
export function requestBytes(exchange: ProxiedExchange, token: string, cut: Pick<Plan, 'cutAt' | 'how'> = {}): Buffer {
  const plan: Plan = {
    answer: Buffer.from(exchange.answer, 'latin1').toString('base64url'),
    echoes: exchange.echoes,
    ...cut,
  };
  const path = Buffer.from(JSON.stringify(plan)).toString('base64url');
  const lines = [`${exchange.method} /${token}/${path} HTTP/1.1`, 'Host: fuzz', ...exchange.lines, '', ''];
  return Buffer.from(lines.join('\r\n') + exchange.body, 'latin1');
}

/** Bytes that parsers and writers of HTTP trip over. */
const sharp = [
  '\0',
  '\x01',
  '\r',
  '\n',
  '\r\n',
  '\n\n',
  ' ',
  '\t',
  ':',
  '\x7f',
  '\x80',
  '\xff',
  '0',
  '9',
  '-',
  ',',
  ';',
  'HTTP/1.1 ',
];

/** The exchange with an answer that was changed in a few places. */
export function malicious(exchange: ProxiedExchange, random: Random): ProxiedExchange {
  let { answer } = exchange;
  const changes = 1 + random.below(4);
  for (let i = 0; i < changes; i += 1) {
    const at = random.below(answer.length);
    const skipped = random.below(3);
    answer = answer.slice(0, at) + random.pick(sharp) + answer.slice(at + skipped);
  }
  return { ...exchange, name: `malicious ${exchange.name}`, answer };
}
