import { describe, expect, test } from 'vitest';
import { Random } from '../test/fuzz/random.ts';
import { mapCookie, mapLinks, mapReference, mapRefresh, withoutSiteWide } from './session-view.ts';
import { newToken } from './testing/token.ts';

const prefix = `/${newToken()}`;
const view = { prefix, hosts: ['sessions.example:7102', 'public.example'], port: 8888 };
const ownHost = { prefix: '', hosts: ['label.sessions.example'], port: 8888 };

test.each([
  ['/', '<prefix>/'],
  ['/a/b?c=/d#/e', '<prefix>/a/b?c=/d#/e'],
  ['/%2F%00é', '<prefix>/%2F%00é'],
  ['/<other>/', '<prefix>/<other>/'],
  ['http://sessions.example:7102', '<prefix>/'],
  ['http://sessions.example:7102/a', '<prefix>/a'],
  ['https://SESSIONS.example:7102/a?b', '<prefix>/a?b'],
  ['http://public.example?a', '<prefix>/?a'],
  ['https://public.example:443#a', '<prefix>/#a'],
  ['//public.example/a', '<prefix>/a'],
  [String.raw`\a`, String.raw`<prefix>\a`],
  [String.raw`http:\\public.example\a`, String.raw`<prefix>\a`],
  // The port on which the application listens.
  ['http://sessions.example:8888/a/?b#c', '<prefix>/a/?b#c'],
  ['https://Public.example:8888', '<prefix>/'],
  ['http://localhost:8888/a', '<prefix>/a'],
  ['//127.0.0.1:8888/../a', '<prefix>/a'],
  [String.raw`http:\\[::1]:8888\a`, String.raw`<prefix>\a`],
  ['http://0.0.0.0:8888//elsewhere.example', '<prefix>//elsewhere.example'],
  // As in the application's view, nothing is above its root.
  ['/../a', '<prefix>/a'],
  ['/a/%2e%2E/../../b?/../c', '<prefix>/b?/../c'],
  ['/..//a', '<prefix>//a'],
  [String.raw`/a\..\..\b`, '<prefix>/b'],
  // An application that knows its prefix.
  ['<prefix>', '<prefix>'],
  ['<prefix>/a', '<prefix>/a'],
  ['<prefix>?a', '<prefix>?a'],
  ['http://public.example<prefix>/a', '<prefix>/a'],
  ['<prefix>a', '<prefix><prefix>a'],
  ['<prefix>/../<other>/', '<prefix>/<other>/'],
])('a path of the application is below the prefix: %s', (reference, expected) => {
  const of = (text: string) => text.replaceAll('<prefix>', prefix).replaceAll('<other>', 'x'.repeat(43));
  expect(mapReference(of(reference), view)).toBe(of(expected));
});

test.each([
  '',
  'a',
  './a',
  '../a',
  '?a',
  '#a',
  'https://elsewhere.example/a',
  'http://sessions.example/a',
  'http://sessions.example:7103/a',
  '//elsewhere.example/sessions.example',
  'http://sessions.example:7102@elsewhere.example/',
  'http://sessions.example:7102.elsewhere.example/',
  'http://localhost:3000/a',
  'http://localhost/a',
  'http://localhost:8888@elsewhere.example/',
  'http://localhost:8888.elsewhere.example/',
  'http://elsewhere.example:8888/',
  '///a',
  'mailto:a@public.example',
  'data:/a',
])('relative references and URLs of other hosts stay unchanged: %s', (reference) => {
  expect(mapReference(reference, view)).toBe(reference);
});

test.each([
  ['http://label.sessions.example:8080/a/?b#c', '/a/?b#c'],
  ['//LABEL.sessions.example:8080', '/'],
  ['http://label.sessions.example:8080?a', '/?a'],
  // The rest would name another host.
  ['http://label.sessions.example:8080//elsewhere.example', 'http://label.sessions.example:8080//elsewhere.example'],
  ['http://localhost:8888/a', '/a'],
  ['http://localhost:8888//elsewhere.example', 'http://localhost:8888//elsewhere.example'],
  ['http://localhost:3000/a', 'http://localhost:3000/a'],
  ['http://label.sessions.example:80/a', 'http://label.sessions.example:80/a'],
  ['https://label.sessions.example/a', 'https://label.sessions.example/a'],
  ['http://other.sessions.example:8080/a', 'http://other.sessions.example:8080/a'],
  ['/a', '/a'],
])('in the host form, other ports of the session’s host belong to the application: %s', (reference, expected) => {
  expect(mapReference(reference, ownHost)).toBe(expected);
});

test('a redirect without a port names the default port, not that of the proxy', () => {
  const local = { prefix: '', hosts: ['label.localhost:7102'], port: 80 };
  expect(mapReference('http://label.localhost/a/', local)).toBe('/a/');
  expect(mapReference('http://label.localhost:7102/a/', local)).toBe('http://label.localhost:7102/a/');
  const byPath = { prefix, hosts: ['localhost:7102'], port: 80 };
  expect(mapReference('http://localhost/a/', byPath)).toBe(`${prefix}/a/`);
  expect(mapReference('https://localhost/a/', byPath)).toBe('https://localhost/a/');
  expect(mapReference('https://localhost/a/', { ...byPath, port: 443 })).toBe(`${prefix}/a/`);
});

test('links and refreshes that name the port of the application lead to the session', () => {
  expect(mapLinks('<http://localhost:8888/a>; rel=next', ownHost)).toBe('</a>; rel=next');
  expect(mapRefresh('0;url=http://label.sessions.example:8888/a', ownHost)).toBe('0;url=/a');
  expect(mapRefresh('0;url=http://sessions.example:8888/a', view)).toBe(`0;url=${prefix}/a`);
});

test.each([
  ['</a.css>; rel=preload', '<<prefix>/a.css>; rel=preload'],
  ['</a>; title="</b>", <http://public.example/c>;rel=next', '<<prefix>/a>; title="</b>", <<prefix>/c>;rel=next'],
  [String.raw`<a>; title="\"</b>", </c>`, String.raw`<a>; title="\"</b>", <<prefix>/c>`],
  ['<https://elsewhere.example/>, </a', '<https://elsewhere.example/>, </a'],
  ['"</a>', '"</a>'],
  ['<><>', '<><>'],
])('the targets of links: %s', (value, expected) => {
  expect(mapLinks(value, view)).toBe(expected.replaceAll('<prefix>', prefix));
});

test.each([
  ['0; url=/a', '0; url=<prefix>/a'],
  ['5;URL="/a"', '5;URL="<prefix>/a"'],
  ["1.5 , url = 'http://public.example/a'", "1.5 , url = '<prefix>/a'"],
  ['0;/a', '0;<prefix>/a'],
  ['3', '3'],
  ['0; url=https://elsewhere.example/', '0; url=https://elsewhere.example/'],
])('the target of a refresh: %s', (value, expected) => {
  expect(mapRefresh(value, view)).toBe(expected.replaceAll('<prefix>', prefix));
});

describe('in the host form', () => {
  test.each([
    ['"storage"', '"storage"'],
    ['"cache", "cookies" ,"executionContexts"', '"cache", "executionContexts"'],
    ['"*"', ''],
    ['cookies, "clientHints"', ''],
  ])('an application clears the data of its own origin alone: %s', (value, expected) => {
    expect(withoutSiteWide(value)).toBe(expected);
  });

  test('the paths of the application are those of the client', () => {
    for (const reference of ['/', '/a', 'http://label.sessions.example/a', '/../a']) {
      expect(mapReference(reference, ownHost)).toBe(reference);
      expect(mapLinks(`<${reference}>`, ownHost)).toBe(`<${reference}>`);
      expect(mapRefresh(`0;url=${reference}`, ownHost)).toBe(`0;url=${reference}`);
    }
  });

  test('a cookie keeps its path and stays on its host', () => {
    expect(mapCookie('__Host-id=1; Path=/; Secure', ownHost)).toBe('__Host-id=1; Path=/; Secure');
    expect(mapCookie('id=1; Domain=sessions.example; Path=/', ownHost)).toBe('id=1; Path=/');
    expect(mapCookie('id=1; DOMAIN = .example ;Path=/;domain=x', ownHost)).toBe('id=1;Path=/');
  });
});

describe('with random texts', () => {
  const parts = [
    String.raw`/ // \ . .. %2e %2E%2e ? # : @ a b.c é < > " ; , = url= path= Domain= ;Path=/ 0`.split(' '),
    ['http:', 'https:', 'http://', 'public.example', 'sessions.example:7102', 'elsewhere.example', prefix, ' '],
  ].flat();
  const texts = (seed: number, count: number) => {
    const random = new Random(seed);
    const text = () => Array.from({ length: random.below(12) }, () => random.pick(parts)).join('');
    return Array.from({ length: count }, text);
  };
  const base = `http://${view.hosts[0]}${prefix}/`;

  test('a browser resolves a mapped reference below the prefix, or to the same other origin as before', () => {
    for (const text of texts(1, 5_000)) {
      const reference = text.trim();
      if (!/^[/\\]|^https?:/.test(reference)) continue;
      const [before, after] = [reference, mapReference(reference, view)].map((each) => URL.parse(each, base));
      if (!before || !after) continue;
      const isOwn = before.host === new URL(base).host;
      // A URL with a user, or without slashes after its scheme, is left alone.
      if (isOwn && !/@|^https?:(?![/\\]{2})|^https?:[/\\]{3}|^[/\\]{3}/.test(reference)) {
        expect([reference, after.host, `${after.pathname}/`.startsWith(`${prefix}/`)]).toEqual([
          reference,
          before.host,
          true,
        ]);
      } else if (!isOwn && before.host !== 'public.example')
        expect([reference, after.href]).toEqual([reference, before.href]);
    }
  });

  test('mapping is idempotent', () => {
    for (const text of texts(2, 5_000)) {
      for (const map of [mapReference, mapLinks, mapRefresh, mapCookie]) {
        const once = map(text, view);
        expect([text, map(once, view)]).toEqual([text, once]);
      }
    }
  });

  test('no cookie has a domain, or an absolute path outside of the prefix', () => {
    for (const text of texts(3, 5_000)) {
      const attributes = mapCookie(`id=1;${text}`, view).split(';').slice(1);
      for (const attribute of attributes) {
        const [name = '', ...rest] = attribute.split('=');
        const value = rest.join('=').trim();
        expect([text, name.trim().toLowerCase()]).not.toEqual([text, 'domain']);
        if (name.trim().toLowerCase() === 'path' && value.startsWith('/')) {
          expect([text, value.startsWith(prefix)]).toEqual([text, true]);
        }
      }
    }
  });

  test('the time for a long text is linear in its length', () => {
    for (const part of ['<', '"', '"\\', ';', '; ', ';domain', '; path=', '/', '/..', 'http://', '0;']) {
      const text = part.repeat(200_000);
      // CPU time, because elapsed time depends on the load of the machine.
      const before = process.threadCpuUsage();
      for (const map of [mapReference, mapLinks, mapRefresh, mapCookie]) map(text, view);
      expect([part, process.threadCpuUsage(before).user < 2_000_000]).toEqual([part, true]);
    }
  });
});
