import { expect, test } from 'vitest';
import { requestHead } from './request-head.ts';

const get = [':method', 'GET', ':scheme', 'https', ':authority', 'example.com', ':path', '/a?b'];

test('the pseudo-headers become the request line and the host; cookies become one header', () => {
  const head = requestHead([...get, 'cookie', 'a=1', 'x-a', '1', 'cookie', 'b=2', 'x-a', '2'], false);
  expect(head).toEqual({
    method: 'GET',
    url: '/a?b',
    rawHeaders: ['host', 'example.com', 'x-a', '1', 'x-a', '2', 'cookie', 'a=1; b=2'],
    headers: { host: 'example.com', 'x-a': '1, 2', cookie: 'a=1; b=2' },
  });
});

test('a body of unknown length is chunked; one of a known length is not', () => {
  expect(requestHead(get, true)?.headers['transfer-encoding']).toBe('chunked');
  const known = requestHead([...get, 'content-length', '3'], true);
  expect(known?.headers).not.toHaveProperty('transfer-encoding');
  expect(known?.headers['content-length']).toBe('3');
});

test('a host beside an equal authority is one host', () => {
  expect(requestHead([...get, 'host', 'example.com'], false)?.rawHeaders).toEqual(['host', 'example.com']);
  const [, , , , , , ...path] = get;
  expect(requestHead([':method', 'GET', ':scheme', 'https', ...path, 'host', 'a'], false)?.headers.host).toBe('a');
});

test.each([
  ['two hosts', [...get, 'host', 'other.example']],
  ['a user in the host', [':method', 'GET', ':authority', 'a@example.com', ':path', '/']],
  ['no host', [':method', 'GET', ':path', '/']],
  ['no path', [':method', 'GET', ':authority', 'example.com']],
  ['a tunnel', [':method', 'CONNECT', ':authority', 'example.com:80']],
  ['a method that HTTP/1.1 servers do not accept', [...get.slice(2), ':method', 'GOT']],
  ['a transfer coding', [...get, 'transfer-encoding', 'chunked']],
  ['a connection option', [...get, 'connection', 'x-verified-username']],
  ['an upgrade', [...get, 'upgrade', 'websocket']],
])('%s: the request is malformed', (_name, raw) => {
  expect(requestHead(raw, false)).toBeUndefined();
});
