import { afterAll, beforeAll, expect, test } from 'vitest';
import { labelOfToken } from '../model/session-host.ts';
import { exchangeBytes, openFixture, spawnReady, startMirror, valuesOf } from './testing/fixture.ts';
import type { Fixture, Program, Seen, Session } from './testing/fixture.ts';

const sessionDomain = 'sessions.example';

let fixture: Fixture;
let mirror: Program;
let session: Session;
beforeAll(async () => {
  fixture = await openFixture({ sessionDomain });
  mirror = await startMirror();
  session = await spawnReady(fixture, mirror);
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await mirror[Symbol.asyncDispose]();
});

/** Sends a request with a target and header lines. */
async function ask(target: string, lines: string, version = '1.1'): Promise<string> {
  return await exchangeBytes(fixture.port, `GET ${target} HTTP/${version}\r\n${lines}Connection: close\r\n\r\n`);
}

function seenIn(answer: string): Seen {
  return JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)) as Seen;
}

test('a request with a target in absolute form reaches the backend in origin form', async () => {
  const seen = seenIn(await ask(`http://a.example:81/${session.token}/x?y=%2e`, 'Host: other\r\n'));
  expect(seen.url).toBe('/x?y=%2e');
  expect(valuesOf(seen, 'host')).toEqual(['a.example:81']);
  expect(valuesOf(seen, 'x-forwarded-host')).toEqual(['a.example:81']);
});

test('in the host form, the label comes from the target, not from Host', async () => {
  const host = `${labelOfToken(session.token)}.${sessionDomain}`;
  const seen = seenIn(await ask(`http://${host}/x`, 'Host: other\r\n'));
  expect([seen.url, ...valuesOf(seen, 'host')]).toEqual(['/x', host]);
  expect(await ask('http://other/x', `Host: ${host}\r\n`)).toMatch(/^HTTP\/1\.1 404 /);
});

test('a client of HTTP/1.0 may leave out Host', async () => {
  const seen = seenIn(await ask(`http://a/${session.token}/x`, '', '1.0'));
  expect([seen.url, ...valuesOf(seen, 'host')]).toEqual(['/x', 'a']);
});

test.each([
  ['a user in the target', () => `http://u@a/${session.token}/x`, 'Host: a\r\n'],
  ['another scheme', () => `ftp://a/${session.token}/x`, 'Host: a\r\n'],
  ['two hosts beside the target', () => `http://a/${session.token}/x`, 'Host: a\r\nHost: a\r\n'],
])('a request with %s is refused', async (_name, target, lines) => {
  expect(await ask(target(), lines)).toMatch(/^HTTP\/1\.1 400 /);
});

test('the next request on the connection is read as well', async () => {
  const first = `GET http://a/${session.token}/1 HTTP/1.1\r\nHost: a\r\n\r\n`;
  const second = `GET /${session.token}/2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
  const answers = await exchangeBytes(fixture.port, first + second);
  expect([...answers.matchAll(/"url":"([^"]*)"/g)].map(([, url]) => url)).toEqual(['/1', '/2']);
});
