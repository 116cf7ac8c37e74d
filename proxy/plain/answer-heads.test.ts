import { expect, test, vi } from 'vitest';
import { AnswerHeads } from './answer-heads.ts';

const view = { prefix: '/t', hosts: ['x'], port: 8080 };
const date = 'Date: Mon, 23 Nov 2026 12:00:00 GMT\r\n';
const first = `HTTP/1.1 200 OK\r\n${date}Location: /a\r\nContent-Length: 2\r\n\r\n`;

const read = (heads: AnswerHeads, text: string, method = 'GET') =>
  heads.read(Buffer.from(text, 'latin1'), method, text.length);

test('a head that is the same as the last one has the same result, whatever follows it', () => {
  const heads = new AnswerHeads(view);
  const before = read(heads, `${first}ab`);
  const again = read(heads, `${first}cd${first}`);
  expect(again).toEqual(before);
  expect(again).toEqual({
    end: first.length,
    status: 200,
    framing: { length: 2 },
    keepsAlive: true,
    text: `HTTP/1.1 200 OK\r\n${date}Location: /t/a\r\nContent-Length: 2\r\nReferrer-Policy: same-origin\r\n`,
  });
});

test.each([
  ['HEAD', first],
  ['GET', first.replace('Length: 2', 'Length: 3')],
  ['GET', first.replace('200', '304')],
  ['GET', first.replace('1.1', '1.0')],
  ['GET', first.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')],
  ['GET', first.replace('\r\n\r\n', '\n\n')],
  ['GET', first.slice(0, -1)],
  ['GET', first.replace('\r\n\r\n', '\r\n')],
])('after another head, the answer to %s with %j is read like a first one', (method, text) => {
  const heads = new AnswerHeads(view);
  read(heads, first);
  expect(read(heads, text, method)).toEqual(read(new AnswerHeads(view), text, method));
});

test('an invalid head is refused, whatever came before it', () => {
  const heads = new AnswerHeads(view);
  read(heads, first);
  expect(() => read(heads, first.replace(date, 'Transfer-Encoding: chunked\r\n'))).toThrow('length and chunks');
});

test('a head without a date gets the current date with each answer', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) });
  try {
    const heads = new AnswerHeads(view);
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
    expect(read(heads, text)?.text).toContain('Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n');
    vi.setSystemTime(Date.UTC(2026, 0, 1, 0, 0, 1));
    expect(read(heads, text)?.text).toContain('Date: Thu, 01 Jan 2026 00:00:01 GMT\r\n');
  } finally {
    vi.useRealTimers();
  }
});
