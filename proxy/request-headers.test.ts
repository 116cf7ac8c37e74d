import { expect, test } from 'vitest';
import { newToken } from './testing/token.ts';
import {
  exchangeBytes,
  openFixture,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  valuesOf,
} from './testing/fixture.ts';
import type { Fixture, Seen } from './testing/fixture.ts';

/** Sends a request with these header lines, and returns what the backend saw. */
async function seenWith(fixture: Fixture, token: string, lines: string[], start = 'GET'): Promise<Seen> {
  const head = [`${start} /${token}/ HTTP/1.1`, 'Host: sessions.example', 'Connection: close', ...lines, '', ''];
  const answer = await exchangeBytes(fixture.port, head.join('\r\n'));
  return JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)) as Seen;
}

test('a client cannot send x-verified-* headers in any spelling', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const forged = [
    'X-Verified-Username: mallory',
    'x-verified-username: mallory',
    'X-VERIFIED-USER-DATA: {}',
    'X-Verified-Anything: mallory',
    'x_verified_username: mallory',
    'X_Verified-User_Data: mallory',
    'x.verified.username: mallory',
    'x-verified-secret: mallory',
    'x-verified-secret: mallory again',
    'Connection: x-verified-secret, x-verified-username',
  ];
  const seen = await seenWith(fixture, token, forged);
  expect(JSON.stringify(seen)).not.toContain('mallory');
  expect(valuesOf(seen, 'x-verified-secret')).toEqual([`secret of ${token}`]);
  expect(valuesOf(seen, 'x-verified-username')).toEqual([]);
  expect(valuesOf(seen, 'x-verified-user-data')).toEqual([]);
});

test('a client cannot send x-verified-* trailers', async () => {
  await using fixture = await openFixture();
  const trailers: string[][] = [];
  await using program = await startProgram((request, response) => {
    request.resume().once('end', () => {
      trailers.push(request.rawTrailers);
      response.end();
    });
  });
  const { token } = await spawnReady(fixture, program);
  await exchangeBytes(
    fixture.port,
    `POST /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n` +
      '3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-Verified-Username: mallory\r\n\r\n',
  );
  expect(trailers).toEqual([['X-Sum', '1']]);
});

test('x-verified-username is UTF-8, x-verified-user-data is ASCII JSON', async () => {
  await using fixture = await openFixture();
  const heads: string[] = [];
  await using program = await startRawProgram((socket, head) => {
    heads.push(head);
    socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
  });
  const user = 'Zoë 北京 🎈';
  const { token } = await spawnReady(fixture, program, { user, auth: { name: 'Zoë', n: 1 } });
  await fetch(`${fixture.url}/${token}/`);
  const head = Buffer.from(heads[0] ?? '', 'latin1').toString('utf8');
  expect(head).toContain(`x-verified-username: ${user}\r\n`);
  expect(heads[0]).toContain('x-verified-user-data: {"name":"Zo\\u00eb","n":1}\r\n');
});

test('other headers of the client keep their spelling, duplicates and bytes', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const lines = [
    'X-Custom: one',
    'x-custom: two',
    'Cookie: a=1',
    'Cookie: b=2',
    'X-Latin: caf\xe9',
    '__proto__: kept',
    'constructor: kept',
    'Authorization: Basic YTpi',
    'Origin: https://elsewhere.example',
    'Accept-Encoding: br',
  ];
  const seen = await seenWith(fixture, token, lines);
  expect(valuesOf(seen, 'x-custom')).toEqual(['one', 'two']);
  expect(seen.rawHeaders).toContain('X-Custom');
  expect(valuesOf(seen, 'cookie')).toEqual(['a=1; b=2']);
  expect(valuesOf(seen, '__proto__')).toEqual(['kept']);
  expect(valuesOf(seen, 'constructor')).toEqual(['kept']);
  expect(valuesOf(seen, 'authorization')).toEqual(['Basic YTpi']);
  expect(valuesOf(seen, 'origin')).toEqual(['https://elsewhere.example']);
  expect(valuesOf(seen, 'accept-encoding')).toEqual(['br']);
  expect(valuesOf(seen, 'host')).toEqual(['sessions.example']);
});

test('hop-by-hop headers are not forwarded', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const lines = [
    'Connection: x-private, host',
    'X-Private: secret',
    'Keep-Alive: timeout=5',
    'Proxy-Authorization: Basic YTpi',
    'Proxy-Connection: keep-alive',
    'TE: trailers, deflate',
    'Expect: 100-continue',
  ];
  const seen = await seenWith(fixture, token, lines);
  const names = seen.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  expect(names).not.toContain('x-private');
  expect(names).not.toContain('keep-alive');
  expect(names).not.toContain('proxy-authorization');
  expect(names).not.toContain('proxy-connection');
  expect(names).not.toContain('expect');
  expect(valuesOf(seen, 'te')).toEqual(['trailers']);
  expect(valuesOf(seen, 'connection')).toEqual(['keep-alive']);
  expect(valuesOf(seen, 'host')).toEqual(['sessions.example']);
});

test.each(['Proxy', 'proxy', 'PROXY'])('a client cannot choose the proxy of a CGI program by %s', async (name) => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const seen = await seenWith(fixture, token, [`${name}: http://evil.example/`, 'X-Proxy: own']);
  expect(JSON.stringify(seen)).not.toContain('evil');
  expect(valuesOf(seen, 'x-proxy')).toEqual(['own']);
});

test('without a load balancer, forwarding headers of a client are dropped', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const lines = [
    'X-Forwarded-For: 6.6.6.6',
    'x_forwarded_for: 6.6.6.6',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: evil.example',
    'X-Forwarded-Prefix: /evil',
    'X-Forwarded-Port: 666',
    'Forwarded: for=6.6.6.6',
    'X-Real-IP: 6.6.6.6',
  ];
  const seen = await seenWith(fixture, token, lines);
  expect(JSON.stringify(seen)).not.toMatch(/6\.6\.6\.6|evil|666/);
  expect(valuesOf(seen, 'x-forwarded-for')).toEqual(['127.0.0.1']);
  expect(valuesOf(seen, 'x-forwarded-proto')).toEqual(['http']);
  expect(valuesOf(seen, 'x-forwarded-host')).toEqual(['sessions.example']);
  expect(valuesOf(seen, 'x-forwarded-prefix')).toEqual([`/${token}`]);
});

test('behind a load balancer, its forwarding headers are kept', async () => {
  await using fixture = await openFixture({ behindLoadBalancer: true });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const lines = ['X-Forwarded-For: 8.8.8.8', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: app.example'];
  const seen = await seenWith(fixture, token, lines);
  expect(valuesOf(seen, 'x-forwarded-for')).toEqual(['8.8.8.8, 127.0.0.1']);
  expect(valuesOf(seen, 'x-forwarded-proto')).toEqual(['https']);
  expect(valuesOf(seen, 'x-forwarded-host')).toEqual(['app.example']);
});

test('platform credentials and the tokens of other sessions are not forwarded', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const other = newToken();
  const lines = [
    'Cookie: a=1; __Host-berth-session=stolen; b=2; berth_login=stolen',
    'Authorization: Bearer berth_pat_stolen',
    `Referer: http://sessions.example/${other}/page`,
  ];
  const seen = await seenWith(fixture, token, lines);
  expect(JSON.stringify(seen)).not.toMatch(/stolen/);
  expect(JSON.stringify(seen)).not.toContain(other);
  expect(valuesOf(seen, 'cookie')).toEqual(['a=1; b=2']);
  expect(valuesOf(seen, 'referer')).toEqual(['http://sessions.example/']);
  const own = await seenWith(fixture, token, [`Referer: http://sessions.example/${token}/page`]);
  expect(valuesOf(own, 'referer')).toEqual([`http://sessions.example/${token}/page`]);
});

test.each([
  ['both lengths', ['Content-Length: 3', 'Transfer-Encoding: chunked']],
  ['two lengths', ['Content-Length: 3', 'Content-Length: 4']],
  ['two hosts', ['Host: other.example']],
  ['another coding', ['Transfer-Encoding: gzip, chunked']],
  ['an unknown coding', ['Transfer-Encoding: xchunked']],
  ['a space before the colon', ['Transfer-Encoding : chunked']],
  ['a folded line', ['X-A: b', ' c']],
])('a request that can be read in two ways is refused: %s', async (_name, lines) => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const head = [`POST /${token}/ HTTP/1.1`, 'Host: a', 'Connection: close', ...lines, '', '0\r\n\r\n'];
  const answer = await exchangeBytes(fixture.port, head.join('\r\n'));
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(mirror.connections()).toBe(0);
});

test.each([1_500, 2_100])('%i headers cannot hide a body', async (count) => {
  await using fixture = await openFixture();
  const urls: (string | undefined)[] = [];
  await using program = await startProgram((request, response) => {
    urls.push(request.url);
    request.resume().once('end', () => response.end());
  });
  const { token } = await spawnReady(fixture, program);
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\nx-verified-username: root\r\n\r\n';
  const answer = await exchangeBytes(
    fixture.port,
    `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${'a:\r\n'.repeat(count)}` +
      `Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  );
  expect(urls).toEqual([]);
  expect(answer).toMatch(/^HTTP\/1\.1 4(?:00|31) /);
});

test('TRACE is rejected, because its answer would contain headers of the platform', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const answer = await exchangeBytes(fixture.port, `TRACE /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
});

test('a request without Host is rejected in HTTP/1.1 and accepted in HTTP/1.0', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  expect(await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.1\r\nConnection: close\r\n\r\n`)).toMatch(
    /^HTTP\/1\.1 400 /,
  );
  expect(await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
});
