/** Only the platform can set its headers, and its credentials and tokens reach no backend and no log. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Random } from '../fuzz/random.ts';
import { openLog } from '../../core/log/log.ts';
import { makeEnded, until } from '../../proxy/testing/fixture.ts';
import { newToken } from '../../proxy/testing/token.ts';
import { labelOfToken } from '../../model/session-host.ts';
import { converse } from './conversation.ts';
import { exchange } from './exchange.ts';
import type { Message } from './strict-reader.ts';
import { sessionDomain, ProxyUnderTest } from './proxy-under-test.ts';
import type { RecordedSession } from './proxy-under-test.ts';

const limitMs = 10_000;

/** Time after which a client disconnects while the proxy waits for the rest of its request. */
const unfinishedMs = 200;
const user = 'ada';
const auth = { role: 'editor' };

let proxy: ProxyUnderTest;
let session: RecordedSession;
const logged: string[] = [];

beforeAll(async () => {
  proxy = await ProxyUnderTest.open({ log: openLog('debug', { write: (line) => void logged.push(line) }) });
  session = await proxy.session({ user, auth });
});
afterAll(() => proxy[Symbol.asyncDispose]());

/** Sends a request with these lines and this body, and returns the request that the backend received. */
async function sent(lines: readonly string[], { method = 'GET', body = '' } = {}): Promise<Message> {
  const { backendServer, token } = session;
  backendServer.clear();
  const head = [`${method} /${token}/x HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n');
  await converse(proxy.port, [head + body], { limitMs });
  expect([backendServer.problems, backendServer.requests.length]).toEqual([[], 1]);
  return backendServer.requests[0] as Message;
}

function valuesOf({ headers }: Message, name: string): string[] {
  return headers.flatMap(([each, value]) => (each.toLowerCase() === name ? [value] : []));
}

/** The names that a program reads as headers of the platform if it maps all punctuation to one character. */
function verified({ headers, trailers }: Message): string[] {
  const names = [...headers, ...trailers].map(([name]) => name);
  return names.filter((name) => /^x[^a-z0-9]verified[^a-z0-9]/i.test(name)).toSorted();
}

const platformHeaders = ['x-verified-secret', 'x-verified-user-data', 'x-verified-username'];

function expectVerified(request: Message): void {
  expect(verified(request)).toEqual(platformHeaders);
  expect(valuesOf(request, 'x-verified-username')).toEqual([user]);
  expect(valuesOf(request, 'x-verified-user-data')).toEqual([JSON.stringify(auth)]);
  expect(valuesOf(request, 'x-verified-secret')).toEqual([`secret of ${session.token}`]);
}

/** A spelling of a name: in any case, with any punctuation that names may have. */
function spelled(name: string, random: Random): string {
  const characters = Array.from(name, (each) => {
    if (each === '-') return random.pick(["-_.!~*'|+$%&#^`", '-', '_'].join('').split(''));
    return random.below(2) === 0 ? each : each.toUpperCase();
  });
  return characters.join('');
}

const random = new Random(19);
const spellings = Array.from({ length: 120 }, () =>
  spelled(random.pick([...platformHeaders, 'x-verified-', 'x-verified-anything']), random),
);

test.each([
  ['in a plain request', [], {}],
  ['in a request with a body', ['Content-Length: 3'], { method: 'POST', body: 'abc' }],
  ['in an upgrade', ['Connection: upgrade', 'Upgrade: websocket'], {}],
  ['as connection options', [`Connection: ${spellings.slice(0, 20).join(', ')}, ${platformHeaders.join(', ')}`], {}],
])('no client can send headers of the platform: %s', async (_name, lines, options) => {
  for (let at = 0; at < spellings.length; at += 30) {
    const forged = spellings.slice(at, at + 30).map((name) => `${name}: mallory`);
    const request = await sent([...lines, ...forged], options);
    expectVerified(request);
    expect(JSON.stringify(request)).not.toContain('mallory');
  }
});

test('no client can send headers of the platform as trailers, or in the extensions of chunks', async () => {
  const trailers = [...spellings, 'Host', 'Content-Length', 'Transfer-Encoding', 'X-Forwarded-For', 'Cookie'];
  let forwarded = 0;
  for (const name of trailers) {
    const body = `3;x-verified-username=mallory\r\nabc\r\n0\r\n${name}: ${name === 'Content-Length' ? '0' : 'mallory'}\r\n\r\n`;
    session.backendServer.clear();
    const head = `POST /${session.token}/x HTTP/1.1\r\nHost: a\r\nTrailer: ${name}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    await exchange(proxy, [head + body], {
      quietMs: limitMs,
      isDone: (received) => /^HTTP\/1\.1 [^]*\r\n\r\n/.test(received),
    });
    expect(session.backendServer.problems).toEqual([]);
    for (const request of session.backendServer.requests) {
      forwarded += 1;
      expectVerified(request);
      expect([name, JSON.stringify(request)]).toEqual([name, expect.not.stringContaining('mallory')]);
    }
  }
  expect(forwarded).toBeGreaterThan(trailers.length / 2);
});

const pat = 'berth_pat_0123456789';

test.each([
  [[`Authorization: Bearer ${pat}`], []],
  [[`AUTHORIZATION: bearer \t${pat}`], []],
  [[`authorization: Bearer my.home.${pat}`], []],
  [[`Authorization: Basic ${btoa(`acme:${pat}`)}`], []],
  [[`Authorization: Basic ${btoa(`${pat}:`)}`], []],
  [[`Authorization: Basic YTpi, Bearer ${pat}`], []],
  [[`Authorization: Bearer own`, `Authorization: Bearer ${pat}`], ['Bearer own']],
  [[`Authorization: Basic ${btoa('acme:own')}`], [`Basic ${btoa('acme:own')}`]],
  [[`Proxy-Authorization: Bearer ${pat}`], []],
])('a token of the platform in %j does not reach a backend', async (lines, expected) => {
  for (const upgrade of [[], ['Connection: upgrade', 'Upgrade: websocket']]) {
    const request = await sent([...lines, ...upgrade]);
    expect(valuesOf(request, 'authorization')).toEqual(expected);
    expect(JSON.stringify(request)).not.toContain(pat);
  }
});

test.each([
  [['Cookie: a=1; berth_session=stolen; b=2'], ['a=1; b=2']],
  [['COOKIE: __Host-berth-session=stolen'], []],
  [['Cookie: __host-BERTH_session=stolen;a=1'], ['a=1']],
  [['Cookie: =__Host-berth-session=stolen; a=1'], ['a=1']],
  [['Cookie: a=1;\tberth_session=stolen'], ['a=1']],
  [['Cookie: a=1', 'Cookie: berth_session=stolen'], ['a=1']],
  [['Cookie: berth_session="stolen; more"; a=1'], undefined],
])('a cookie of the platform in %j does not reach a backend', async (lines, expected) => {
  for (const upgrade of [[], ['Connection: upgrade', 'Upgrade: websocket']]) {
    const request = await sent([...lines, ...upgrade]);
    if (expected) expect(valuesOf(request, 'cookie')).toEqual(expected);
    expect(JSON.stringify(request)).not.toContain('stolen');
  }
});

test('the log contains no token or label, for requests with any outcome', async () => {
  const ended = await proxy.session();
  const unreachable = await proxy.session();
  await makeEnded(proxy.fixture, ended.backend);
  await unreachable.backendServer[Symbol.asyncDispose]();
  const unknown = newToken();
  const tokens = [session.token, ended.token, unreachable.token, unknown];
  const hosts = tokens.map((token) => `${labelOfToken(token)}.${sessionDomain}`);
  const targets = ['', '/', '/a?b', '/%ff', '/%', '/%zz', '//', '/a b', '/\x00', '#', '?x'];
  const requests = [
    ...tokens.flatMap((token) => targets.map((target) => `GET /${token}${target} HTTP/1.1\r\nHost: a\r\n`)),
    ...hosts.flatMap((host) => ['/', '/%ff', '*'].map((target) => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n`)),
    ...tokens.map((token) => `GET /${token}/ HTTP/1.1\r\nHost: a\r\nReferer: http://a/${unknown}/\r\nX : y\r\n`),
    ...tokens.map((token) => `GET /${token}/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n`),
    ...tokens.map((token) => `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n`),
    ...tokens.map((token) => `TRACE /${token}/ HTTP/1.1\r\nHost: a\r\n`),
  ];
  const unfinished = tokens.map((token) => `POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n`);
  logged.length = 0;
  const exchanged = async (all: readonly string[], quietMs: number) =>
    await Promise.all(
      all.map(async (request) => await exchange(proxy, [`${request}Connection: close\r\n\r\n`], { quietMs })),
    );
  const [answers] = await Promise.all([exchanged(requests, limitMs), exchanged(unfinished, unfinishedMs)]);
  expect(answers.filter(({ received }) => received !== '').length).toBeGreaterThan(requests.length / 2);
  await until(() => logged.length > requests.length / 2);
  const text = `${logged.join('')}${await proxy.fixture.metrics.metrics()}`.toLowerCase();
  const secrets = [...tokens, ...tokens.map(labelOfToken)].map((each) => each.toLowerCase());
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
});

test.each([
  [['X: y'], ['same-origin']],
  [['Referrer-Policy: unsafe-url'], ['unsafe-url']],
  [['REFERRER-POLICY: origin'], ['origin']],
  [['Connection: referrer-policy', 'Referrer-Policy: unsafe-url'], ['same-origin']],
])('an answer with %j has the referrer policy %j', async (lines, expected) => {
  session.backendServer.answer = () => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`;
  const { answers } = await converse(proxy.port, [`GET /${session.token}/ HTTP/1.1\r\nHost: a\r\n\r\n`], { limitMs });
  expect(answers.map((answer) => valuesOf(answer, 'referrer-policy'))).toEqual([expected]);
});
