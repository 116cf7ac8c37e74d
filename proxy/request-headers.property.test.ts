/** Random headers of a client, and the headers that reach the backend. */
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { Random } from '../test/fuzz/random.ts';
import { labelOfToken } from '../model/session-host.ts';
import { canonicalName, pairs } from './headers.ts';
import { requestHeaders } from './request-headers.ts';
import { isForwardable } from './request-syntax.ts';
import type { OutgoingHeaders, Verified } from './request-headers.ts';
import { newToken } from './testing/token.ts';

const [token, otherToken] = [newToken(), newToken()];
const platformSecret = 'berth_ses_0123';

const names = [
  ['x-verified-username', 'X-Verified-User-Data', 'x_verified_secret', 'X.Verified.Admin', 'x-verified-'],
  ['X-Forwarded-For', 'x_forwarded_host', 'X-Forwarded-Prefix', 'Forwarded', 'X-Real-IP', 'Proxy'],
  ['Connection', 'Keep-Alive', 'TE', 'Trailer', 'Upgrade', 'Proxy-Authorization', 'Proxy-Connection', 'Expect'],
  ['Host', 'Cookie', 'Authorization', 'Referer', 'Accept', 'X-Own', 'x-own', 'Content-Length', '__proto__'],
].flat();

const values = [
  'a',
  '',
  'x-own',
  'close, X-Own',
  'host, content-length',
  'keep-alive',
  'trailers',
  '100-continue',
  '0',
];

/** Values of headers in which clients send credentials and URLs. */
const special: Readonly<Record<string, readonly string[]>> = {
  Cookie: [
    'a=1',
    `__Host-berth-session=${platformSecret}`,
    `a=1; berth_x=${platformSecret}; b=2`,
    `=__host-berth-x=${platformSecret}`,
  ],
  Authorization: [
    'Bearer mine',
    `Bearer ${platformSecret}`,
    `bearer  ${platformSecret}`,
    `Bearer my.home.${platformSecret}`,
  ],
  Referer: [token, otherToken].flatMap((each) => [
    `http://host/${each}/a`,
    `http://host/${each}`,
    `http://${labelOfToken(each)}.sessions.example/a`,
    `https://${labelOfToken(each).toUpperCase()}.sessions.example:7102`,
  ]),
};

/** The headers of a request, as Node.js reports them. */
function head(rawHeaders: string[]) {
  const headers: Record<string, string> = {};
  for (const [name, value] of pairs(rawHeaders)) headers[name.toLowerCase()] ??= value;
  return { method: 'GET', rawHeaders, headers, remoteAddress: '::ffff:10.0.0.1', isEncrypted: false };
}

function sent(rawHeaders: string[], prefix: string): OutgoingHeaders {
  const view = { prefix, hosts: ['host'], port: 8080 };
  const verified: Verified = { route: { id: '', backend: '' }, token, view, secret: 'ours', behindLoadBalancer: false };
  return requestHeaders(head(rawHeaders), verified);
}

const random = new Random(4);
const requests = Array.from({ length: 1_500 }, () =>
  Array.from({ length: random.below(8) }, () => {
    const name = random.pick(names);
    return [name, random.pick(special[name] ?? values)];
  }).flat(),
);

test.each(['', `/${token}`])('only the platform sets its own headers, with the prefix "%s"', (prefix) => {
  const own = new Set([
    'x-verified-secret',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-forwarded-host',
    'x-forwarded-prefix',
  ]);
  for (const rawHeaders of requests) {
    const headers = sent(rawHeaders, prefix);
    const reserved = Object.keys(headers).filter((name) =>
      /^(?:x-verified-|x-forwarded-|forwarded$|x-real-ip$)/.test(canonicalName(name)),
    );
    expect([rawHeaders, reserved.filter((name) => !own.has(name))]).toEqual([rawHeaders, []]);
    expect(headers).toMatchObject({
      'x-verified-secret': 'ours',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-proto': 'http',
    });
    expect(headers['x-forwarded-prefix']).toBe(prefix === '' ? undefined : prefix);
  }
});

test('no credential of the platform, and no token of another session, reaches a backend', () => {
  for (const rawHeaders of requests) {
    const text = JSON.stringify(sent(rawHeaders, '')).toLowerCase();
    for (const secret of [platformSecret, otherToken.toLowerCase(), labelOfToken(otherToken)]) {
      expect([rawHeaders, text.includes(secret)]).toEqual([rawHeaders, false]);
    }
  }
});

test('hop-by-hop headers and connection options are not forwarded', () => {
  const hopByHop = [
    'connection',
    'keep-alive',
    'trailer',
    'upgrade',
    'proxy-authorization',
    'proxy-connection',
    'expect',
    'proxy',
  ];
  for (const rawHeaders of requests) {
    const headers = sent(rawHeaders, '');
    const seen = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
    expect([rawHeaders, hopByHop.filter((name) => seen.has(name))]).toEqual([rawHeaders, []]);
    const isOption = [...pairs(rawHeaders)].some(([name, value]) => /^connection$/i.test(name) && /x-own/i.test(value));
    if (isOption) expect([rawHeaders, seen.has('x-own')]).toEqual([rawHeaders, false]);
  }
});

test('only requests without exactly one host are refused', () => {
  for (const rawHeaders of requests) {
    const hosts = [...pairs(rawHeaders)].filter(([name]) => name === 'Host');
    const request = { ...head(rawHeaders), httpVersion: '1.1' } as unknown as IncomingMessage;
    expect([rawHeaders, isForwardable(request)]).toEqual([rawHeaders, hosts.length === 1]);
  }
});
