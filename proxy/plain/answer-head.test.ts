import { expect, test } from 'vitest';
import { InvalidAnswer, readAnswerHead } from './answer-head.ts';

const view = { prefix: '/t', hosts: ['x'], port: 8080 };
const read = (head: string, method = 'GET') => {
  const found = readAnswerHead(head, method, view);
  if (!found) throw new InvalidAnswer('Not a head');
  return found;
};
const date = 'Date: Mon, 23 Nov 2026 12:00:00 GMT\r\nReferrer-Policy: origin\r\n';

test('headers keep their order, and paths get the prefix of the client', () => {
  const head = `HTTP/1.1 200 Fine\r\n${date}Location: /a\r\nX-A: b\r\nAlt-Svc: x\r\nContent-Length: 2\r\n\r\n`;
  expect(read(`${head}A: b\r\n\r\n`)).toEqual({
    end: head.length,
    status: 200,
    lines: `${date}Location: /t/a\r\nX-A: b\r\nContent-Length: 2\r\n`,
    framing: { length: 2 },
    keepsAlive: true,
    isConstant: true,
  });
});

test('lines may end in a bare LF, and the client gets CRLF', () => {
  const { lines, framing } = read(`HTTP/1.0 200\nX-A:  b \nX-B:\n${date}\n`);
  expect(lines).toBe(`X-A: b\r\nX-B: \r\n${date}`);
  expect(framing).toBe('until-close');
});

test('the date and the policy are added unless the backend sends them as end-to-end headers', () => {
  expect(read('HTTP/1.1 200 OK\r\n\r\n').lines).toMatch(/^Referrer-Policy: same-origin\r\nDate: .*GMT\r\n$/);
  const named = read(`HTTP/1.1 200 OK\r\nConnection: referrer-policy, x-a\r\nX-A: b\r\n${date}\r\n`).lines;
  expect(named).toContain('Referrer-Policy: same-origin\r\n');
  expect(named).not.toContain('X-A');
});

test.each([
  ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'none'],
  ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', 'none'],
  ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 'none'],
  ['GET', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'none'],
  ['GET', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'chunked'],
  ['GET', 'HTTP/1.1 200 OK\r\n\r\n', 'until-close'],
])('%s, %j: the body is %s', (method, head, framing) => {
  expect(read(head, method).framing).toEqual(framing);
});

test.each([
  ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', true],
  ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n', false],
  ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', false],
  ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n', true],
  ['HTTP/1.1 200 OK\r\n\r\n', false],
])('%j: the connection is kept: %s', (head, keepsAlive) => {
  expect(read(head).keepsAlive).toBe(keepsAlive);
});

test.each([
  'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n',
  'HTTP/1.1 200 OK\r\nX : y\r\n\r\n',
  'HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n',
  'HTTP/1.1 200 OK\r\nX: \0\r\n\r\n',
  'HTTP/1.1 200 O\0K\r\n\r\n',
  'HTTP/1.1 20 OK\r\n\r\n',
  'HTTP/2 200 OK\r\n\r\n',
  'SSH-2.0\r\n\r\n',
])('%j is not valid', (head) => {
  expect(() => read(head)).toThrow(InvalidAnswer);
});
