import { expect, test } from 'vitest';
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
])('what follows the token stays as it is: %s', (rest, kept) => {
  expect(parseConnectionUrl(`/${token}${rest}`)).toEqual({ token, rest: kept });
});

test.each([
  ['', `${token}/`],
  ['?a=b&c=%2f', `${token}/?a=b&c=%2f`],
  ['?', `${token}/?`],
])('without a slash it redirects to the URL with it: "%s"', (rest, location) => {
  const url = parseConnectionUrl(`/${token}${rest}`);
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
])('is no connection URL: %s', (target) => {
  expect(parseConnectionUrl(target)).toBeUndefined();
});
