import { expect, test } from 'vitest';
import { HeadReader } from './head-reader.ts';
import { readRequestHead } from './request-head.ts';

const headers = 'Host: a\r\nCookie: b=c\r\nAccept: */*\r\n\r\n';
const first = `GET /a HTTP/1.1\r\n${headers}`;

/** Reads a head after another one on the same connection, and by itself. */
function readAfter(before: string, text: string) {
  const reader = new HeadReader();
  reader.read(Buffer.from(before, 'latin1'));
  const read = reader.read(Buffer.from(text, 'latin1'));
  return { read, headBytes: reader.headBytes, alone: readRequestHead(text) };
}

test('a head that differs only in its target shares the headers of the one before it', () => {
  const reader = new HeadReader();
  const before = reader.read(Buffer.from(first));
  const again = reader.read(Buffer.from(`GET /b?c HTTP/1.1\r\n${headers}`));
  if (typeof before !== 'object' || typeof again !== 'object') throw new Error('Not plain');
  expect(again.headers).toBe(before.headers);
  expect(again).toEqual({ ...before, target: '/b?c' });
  expect(reader.headBytes).toBe(`GET /b?c HTTP/1.1\r\n${headers}`.length);
});

test('a head that is the same as the last one is the same request', () => {
  const reader = new HeadReader();
  const [initial, second, third, fourth] = ['a', 'b', 'b', 'a'].map((target) =>
    reader.read(Buffer.from(`GET /${target} HTTP/1.1\r\n${headers}`)),
  );
  expect(third).toBe(second);
  expect(fourth).toBe(initial);
});

test.each([
  `POST /b HTTP/1.1\r\n${headers}`,
  `HEAD /b HTTP/1.1\r\n${headers}`,
  `GET /b HTTP/1.1\r\nX: y\r\n${headers}`,
  `GET /b HTTP/1.1\r\n${headers.replace('b=c', 'b=d')}`,
  `GET / HTTP/1.1\r\n${headers}`,
])('%j is read like a first head', (text) => {
  const { read, headBytes, alone } = readAfter(first, text);
  expect(read).toEqual(alone);
  expect([alone !== undefined, headBytes]).toEqual([true, text.length]);
});

test.each([
  // The head that is repeated is the body of another request, or follows one.
  `GET /b HTTP/1.0\r\nContent-Length: ${first.length}\r\n\r\n${first}`,
  `POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: ${first.length}\r\nX : y\r\n\r\n${first}`,
  `GET /b c HTTP/1.1\r\n${headers}`,
  `GET b HTTP/1.1\r\n${headers}`,
  `GET  HTTP/1.1\r\n${headers}`,
  `GET /\x00 HTTP/1.1\r\n${headers}`,
  `GET /\xe4 HTTP/1.1\r\n${headers}`,
  `GET /# HTTP/1.1\r\n${headers}`,
  `GETT /b HTTP/1.1\r\n${headers}`,
  ` GET /b HTTP/1.1\r\n${headers}`,
  `\r\nGET /b HTTP/1.1\r\n${headers}`,
  `GET\t/b HTTP/1.1\r\n${headers}`,
  `GET /b\n HTTP/1.1\r\n${headers}`,
  `GET /b HTTP/1.1\r\nX:\r\n y\r\n${headers}`,
])('%j is not plain, whatever came before it', (text) => {
  expect(readAfter(first, text).read).toBeUndefined();
});

test('of a request and another one after it, only the first head is read', () => {
  const { read, headBytes } = readAfter(first, `POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n${first}`);
  expect([read, headBytes]).toMatchObject([{ method: 'POST', body: 5 }, 48]);
});

test('a repeated head has the limits of other heads', () => {
  const long = `GET /${'a'.repeat(16 * 1024)} HTTP/1.1\r\n${headers}`;
  expect(readAfter(first, long).read).toBeUndefined();
});

test('a head may arrive in parts, but not in too many', () => {
  const reader = new HeadReader();
  for (let i = 1; i <= 16; i += 1) expect(reader.read(Buffer.from(first.slice(0, i)))).toBe('unfinished');
  expect(reader.read(Buffer.from(first.slice(0, 17)))).toBeUndefined();
});
