import { expect, test } from 'vitest';
import { labelOfToken } from '../model/session-host.ts';
import { newToken } from './testing/token.ts';
import { parseConnectionUrl, redirectOf } from './connection-url.ts';

const token = newToken();

test.each([
  ['/', '/'],
  ['/a/../b', '/a/../b'],
  ['//double//', '//double//'],
  ['/%2e%2e/%2f?x=%00&y', '/%2e%2e/%2f?x=%00&y'],
  ['/?', '/?'],
  ['/a?b?c#d', '/a?b?c#d'],
])('the rest of the URL stays unchanged: %s', (rest, kept) => {
  expect(parseConnectionUrl(`/${token}${rest}`, {})).toEqual({ token, form: 'path', rest: kept });
});

test.each([
  ['', `${token}/`],
  ['?a=b&c=%2f', `${token}/?a=b&c=%2f`],
  ['?', `${token}/?`],
])('a token without a slash redirects to the URL with the slash: "%s"', (rest, location) => {
  const url = parseConnectionUrl(`/${token}${rest}`, {});
  expect(url && redirectOf(url)).toBe(location);
});

test.each([
  '/',
  '',
  '*',
  `/${token.slice(1)}/`,
  `/${token}x/`,
  `//${token}/`,
  `/${token.slice(1)}%41/`,
  `/${token.slice(1)}./`,
  `http://host/${token}/`,
  `/${token}#/`,
])('not a connection URL: %s', (target) => {
  expect(parseConnectionUrl(target, {})).toBeUndefined();
});

const host = `${labelOfToken(token)}.sessions.example:7102`;
const sessionDomain = 'sessions.example';

test.each(['/', '/a?b', '//', '/%2e%2e/', `/${newToken()}/`])(
  'at the host of a session, every path belongs to the application: %s',
  (target) => {
    expect(parseConnectionUrl(target, { host, sessionDomain })).toEqual({ token, form: 'host', rest: target });
  },
);

test.each(['*', '', 'example:80', `http://${host}/`])('not a path at the host of a session: %s', (target) => {
  expect(parseConnectionUrl(target, { host, sessionDomain })).toBeUndefined();
});

test('other hosts have sessions by path only', () => {
  const target = `/${token}/a`;
  for (const other of [
    'sessions.example',
    'sessions.example:7102',
    '127.0.0.1:7102',
    'www.sessions.example',
    undefined,
  ]) {
    expect(parseConnectionUrl(target, { host: other, sessionDomain })).toEqual({ token, form: 'path', rest: '/a' });
    expect(parseConnectionUrl('/a', { host: other, sessionDomain })).toBeUndefined();
  }
  expect(parseConnectionUrl('/a', { host })).toBeUndefined();
});
