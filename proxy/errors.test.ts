import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { proxyErrors } from '../contract/proxy-errors.ts';
import { newToken } from './testing/token.ts';
import { connected, exchangeBytes, gathered, makeEnded, openFixture, spawn, spawnReady } from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';

const nowhere = { address: { host: '127.0.0.1', port: 1 } };

async function ended(fixture: Fixture, isReady = true): Promise<string> {
  const { token, backend } = await (isReady ? spawnReady(fixture, nowhere) : spawn(fixture));
  await makeEnded(fixture, backend);
  return token;
}

const cases = {
  'not-found': async () => 'favicon.ico',
  gone: async (fixture: Fixture) => await ended(fixture),
  'not-started': async (fixture: Fixture) => await ended(fixture, false),
  'backend-unreachable': async (fixture: Fixture) => (await spawnReady(fixture, nowhere)).token,
  'not-ready': async (fixture: Fixture) => (await spawn(fixture, { createdAt: new Date(0) })).token,
} as const;

test.each(Object.entries(cases))('%s: JSON for programs, a page for browsers, never the token', async (name, make) => {
  const code = name as keyof typeof cases;
  await using fixture = await openFixture();
  const token = await make(fixture);
  const { status, message } = proxyErrors[code];
  for (const accept of ['application/json', 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8']) {
    const answer = await fetch(`${fixture.url}/${token}/secret?secret`, { headers: { accept } });
    const body = await answer.text();
    expect(answer.status).toBe(status);
    expect(answer.headers.get('x-berth-error')).toBe(code);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    expect(body + JSON.stringify([...answer.headers])).not.toMatch(new RegExp(`${token}|secret`));
    expect(body).toContain(message);
    const id = answer.headers.get('x-request-id');
    if (accept === 'application/json') {
      expect(answer.headers.get('content-type')).toBe('application/json');
      expect(JSON.parse(body)).toEqual({ error: { code, message, status, id } });
    } else {
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(body).not.toMatch(/<script|src=|href=|url\(/);
    }
  }
});

test('an unknown token is gone', async () => {
  await using fixture = await openFixture();
  expect((await fetch(`${fixture.url}/${newToken()}/`)).status).toBe(410);
});

test('a response to HEAD has no body', async () => {
  await using fixture = await openFixture();
  const got = await exchangeBytes(fixture.port, `HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(got).toMatch(/^HTTP\/1\.1 404 [^]*\r\n\r\n$/);
});

test('a client that sends its whole body before it reads gets the error', async () => {
  await using fixture = await openFixture();
  const token = await ended(fixture);
  const body = Buffer.alloc(6 * 1024 * 1024, 'x');
  const client = await connected(fixture.port);
  client.pause();
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`);
  await new Promise<void>((resolve, reject) => client.write(body, (error) => (error ? reject(error) : resolve())));
  client.resume();
  expect(await gathered(client)).toMatch(/^HTTP\/1\.1 410 Gone\r\n/);
});

test('the rest of a request body is not read', async () => {
  await using fixture = await openFixture();
  const token = await ended(fixture);
  const outgoing = send(`${fixture.url}/${token}/`, { method: 'POST', headers: { 'content-length': 1e9 } });
  outgoing.on('error', () => {});
  outgoing.write('part');
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(410);
  expect(answer.headers.connection).toBe('close');
  await once(answer.resume(), 'close');
  outgoing.destroy();
});

test('a URL without a slash after the token redirects with its query and method', async () => {
  await using fixture = await openFixture();
  const { token } = await spawn(fixture);
  for (const query of ['', '?a=%2f&b', '?']) {
    const got = await exchangeBytes(
      fixture.port,
      `POST /${token}${query} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    expect(got).toMatch(/^HTTP\/1\.1 307 /);
    expect(got).toContain(`location: ${token}/${query}\r\n`);
    expect(got).toContain('cache-control: no-store\r\n');
  }
});
