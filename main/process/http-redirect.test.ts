import { request } from 'node:http';
import { expect, test } from 'vitest';
import { loadConfig } from '../config/config.ts';
import { openHttpRedirect, secureUrl } from './http-redirect.ts';

const urls = {
  api: 'https://api.example.com',
  registry: 'registry.example.com:7101',
  proxy: 'https://sessions.example.com:8443',
  sessions: 'https://*.sessions.example.com:8443',
  operations: 'http://127.0.0.1:7103',
};

test.each([
  ['api.example.com', '/v2/?a=b', 'https://api.example.com/v2/?a=b'],
  ['API.example.com:80', '/', 'https://api.example.com/'],
  ['registry.example.com', '/v2/', 'https://registry.example.com:7101/v2/'],
  ['sessions.example.com', '/token/a', 'https://sessions.example.com:8443/token/a'],
  ['label.sessions.example.com', '/a', 'https://label.sessions.example.com:8443/a'],
  ['api.example.com', '//other.example/', 'https://api.example.com//other.example/'],
])('%s%s is redirected to %s', (host, target, expected) => {
  expect(secureUrl(host, target, urls)).toBe(expected);
});

test.each([
  ['other.example', '/'],
  ['a.b.sessions.example.com', '/'],
  ['api.example.com@other.example', '/'],
  ['', '/'],
  ['127.0.0.1:7103', '/metrics'],
  ['api.example.com', 'http://other.example/'],
])('%s %s is not redirected', (host, target) => {
  expect(secureUrl(host, target, urls)).toBeUndefined();
});

test('GET requests are redirected, and requests with secrets are refused', async () => {
  const files = { BERTH_TLS_CERTIFICATE_FILES: '/c', BERTH_TLS_KEY_FILES: '/k' };
  await using opening = new AsyncDisposableStack();
  const config = loadConfig({ BERTH_HTTP_PORT: '0', ...files });
  const listener = await openHttpRedirect({ config, urls }, opening);
  const send = async (method: string, headers: Record<string, string>) =>
    await new Promise((resolve, reject) => {
      const sent = request(`http://${listener?.hostPort}/a`, { method, headers }, (answer) => {
        answer.resume();
        resolve([answer.statusCode, answer.headers.location]);
      });
      sent.on('error', reject).end();
    });
  const host = 'api.example.com';
  expect(await send('GET', { host })).toEqual([308, 'https://api.example.com/a']);
  expect(await send('POST', { host })).toEqual([403, undefined]);
  expect(await send('GET', { host, authorization: 'Bearer x' })).toEqual([403, undefined]);
  expect(await send('GET', { host: 'other.example' })).toEqual([404, undefined]);
});

test('the HTTP port requires certificates, and each certificate requires a key', () => {
  expect(() => loadConfig({ BERTH_HTTP_PORT: '80' })).toThrow(
    'BERTH_TLS_CERTIFICATE_FILES: Needed for BERTH_HTTP_PORT',
  );
  const two = { BERTH_TLS_CERTIFICATE_FILES: '/a, /b' };
  expect(() => loadConfig({ ...two, BERTH_TLS_KEY_FILES: '/a' })).toThrow('BERTH_TLS_KEY_FILES: Needed for BERTH_TLS');
  expect(loadConfig({ ...two, BERTH_TLS_KEY_FILES: '/a,/b' }).tlsKeyFiles).toEqual(['/a', '/b']);
});
