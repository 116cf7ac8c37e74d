/** The scenarios of the fuzz test: a client's request through the proxy, and the backend's response. */
import type { Plan } from './plan.ts';
import type { Random } from './random.ts';

/** A request and its response. */
export interface Scenario {
  readonly name: string;
  readonly method: string;
  /** Header lines besides `Host`. */
  readonly lines: readonly string[];
  /** The bytes that the client sends after the head of the request. */
  readonly body: string;
  readonly answer: string;
  readonly echoes: boolean;
}

const close = ['Connection: close'];
const chunks = '5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n';
const upgrade = ['Connection: Upgrade', 'Upgrade: echo'];

/** Both sides disconnect from each of these, at every byte. */
export const scenarios: readonly Scenario[] = [
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
    name: 'until close, after an interim response',
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
    name: 'rejected upgrade',
    method: 'GET',
    lines: upgrade,
    body: '',
    answer: 'HTTP/1.1 426 No\r\nContent-Length: 2\r\n\r\nno',
    echoes: false,
  },
];

/** The bytes of a scenario's request. Its path encodes the behaviour of the backend. */
export function requestBytes(scenario: Scenario, token: string, cut: Pick<Plan, 'cutAt' | 'how'> = {}): Buffer {
  const plan: Plan = {
    answer: Buffer.from(scenario.answer, 'latin1').toString('base64url'),
    echoes: scenario.echoes,
    ...cut,
  };
  const path = Buffer.from(JSON.stringify(plan)).toString('base64url');
  const lines = [`${scenario.method} /${token}/${path} HTTP/1.1`, 'Host: fuzz', ...scenario.lines, '', ''];
  return Buffer.from(lines.join('\r\n') + scenario.body, 'latin1');
}

/** Bytes that can confuse HTTP parsers and writers. */
const confusing = [
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

/** The scenario with a response that is changed in a few places. */
export function malicious(scenario: Scenario, random: Random): Scenario {
  let { answer } = scenario;
  const changes = 1 + random.below(4);
  for (let i = 0; i < changes; i += 1) {
    const at = random.below(answer.length);
    const skipped = random.below(3);
    answer = answer.slice(0, at) + random.pick(confusing) + answer.slice(at + skipped);
  }
  return { ...scenario, name: `malicious ${scenario.name}`, answer };
}
