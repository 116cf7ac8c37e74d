import { expect, test } from 'vitest';
import { isStartOfPlainHead, readRequestHead } from './request-head.ts';

const head = (...lines: string[]) => `${['GET /a?b HTTP/1.1', 'Host: x', ...lines].join('\r\n')}\r\n\r\n`;

test('a plain head is forwarded byte for byte, without headers that only the platform may set', () => {
  const read = readRequestHead(
    head(
      'Accept: a',
      'X-Verified-Username: me',
      'X_Verified.Secret: s',
      'X-Odd:',
      'accept: b',
      'X-Latin: \xe9',
      'Cookie: c=1',
    ),
  );
  expect(read).toMatchObject({ method: 'GET', target: '/a?b', body: 0, isLast: false });
  expect(read?.lines).toBe('Host: x\r\nAccept: a\r\nX-Odd:\r\naccept: b\r\nX-Latin: \xe9\r\n');
  expect(read?.checked).toEqual([{ rule: 'cookie', name: 'Cookie', value: 'c=1' }]);
  expect(read?.headers.accept).toBe('a, b');
});

test('the framing of a body is read', () => {
  const post = (...lines: string[]) => readRequestHead(head(...lines).replace('GET', 'POST'));
  expect(post('Content-Length: 12')).toMatchObject({ body: 12, lines: 'Host: x\r\nContent-Length: 12\r\n' });
  expect(post('Transfer-Encoding: Chunked')).toMatchObject({
    body: 'chunked',
    lines: 'Host: x\r\ntransfer-encoding: chunked\r\n',
  });
  expect(post()).toMatchObject({ body: 0, lines: 'Host: x\r\ncontent-length: 0\r\n' });
  expect(post('Connection: close')?.isLast).toBe(true);
});

test.each([
  ['a length and chunks', head('Content-Length: 1', 'Transfer-Encoding: chunked')],
  ['two lengths', head('Content-Length: 1', 'Content-Length: 1')],
  ['a list of lengths', head('Content-Length: 1, 1')],
  ['a length with a sign', head('Content-Length: +1')],
  ['a length in hexadecimal', head('Content-Length: 0x1')],
  ['an empty length', head('Content-Length:')],
  ['a length in disguise', head('Content_Length: 1')],
  ['a coding in disguise', head('Transfer.Encoding: chunked')],
  ['another coding', head('Transfer-Encoding: gzip, chunked')],
  ['two codings', head('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')],
  ['a second host', head('Host: y')],
  ['no host', 'GET / HTTP/1.1\r\nAccept: a\r\n\r\n'],
  ['an odd host', 'GET / HTTP/1.1\r\nHost: a@b\r\n\r\n'],
  ['a space before the colon', head('X : y')],
  ['a folded line', head('X: y\r\n z')],
  ['a bare LF', head('X: y\nZ: z')],
  ['a bare CR', head('X: y\rZ: z')],
  ['a NUL', head('X: \0')],
  ['a space after a value', head('X: y ')],
  ['two spaces before a value', head('X:  y')],
  ['a line without a colon', head('X')],
  ['an empty name', head(': y')],
  ['a connection option', head('Connection: X', 'X: y')],
  ['two cookies', head('Cookie: a', 'Cookie: b')],
  ['Expect', head('Expect: 100-continue')],
  ['an upgrade', head('Upgrade: websocket')],
  ['a trailer', head('Trailer: X')],
  ['TE', head('TE: trailers')],
  ['HTTP/1.0', head().replace('1.1', '1.0')],
  ['HTTP/0.9', 'GET /\r\n\r\n'],
  ['an absolute target', head().replace('/a', 'http://x/a')],
  ['a fragment', head().replace('/a', '/a#b')],
  ['bytes above 127 in the target', head().replace('/a', '/\xe9')],
  ['two spaces in the request line', head().replace('GET ', 'GET  ')],
  ['another method', head().replace('GET', 'TRACE')],
  ['an empty line before', `\r\n${head()}`],
  ['too many headers', head(...Array.from({ length: 1_000 }, () => 'a:'))],
])('%s is not plain', (_name, text) => {
  expect(readRequestHead(text)).toBeUndefined();
});

test('only a text that may become a plain head is recognised as the start of one', () => {
  const whole = head('X: y', 'Content-Length: 5');
  for (let end = 1; end < whole.length; end += 1) {
    expect([end, isStartOfPlainHead(whole.slice(0, end))]).toEqual([end, true]);
  }
  for (const start of [
    'get',
    '\r\n',
    'GET /\n',
    'GET / HTTP/1.1\n',
    'GET / HTTP/1.1\r\nX : y\r\n',
    'GET / HTTP/1.1\r\nX: y\n',
  ]) {
    expect([start, isStartOfPlainHead(start)]).toEqual([start, false]);
  }
});
