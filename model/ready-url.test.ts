import { describe, expect, test } from 'vitest';
import { readyPath, readyPathTo, urlBelow } from './ready-url.ts';
import { labelOfToken } from './session-host.ts';

const token = 'A'.repeat(43);

describe('readyPathTo', () => {
  test('names the session by token or label, and the path of the application', () => {
    expect(readyPath('b1', { token, form: 'path' })).toBe(`/ready/b1/${token}/`);
    expect(readyPathTo('b1', { token, form: 'path' }, '/')).toBe(`/ready/b1/${token}/`);
    expect(readyPathTo('b1', { token, form: 'host' }, '/a b?c=d&e#f')).toBe(
      `/ready/b1/${labelOfToken(token)}/?path=%2Fa+b%3Fc%3Dd%26e%23f`,
    );
  });
});

describe('urlBelow', () => {
  const host = 'https://label.sessions.example/';
  const below = `https://proxy.example/${token}/`;

  test.each([
    [host, '/a/b?c=d', 'https://label.sessions.example/a/b?c=d'],
    [host, '//evil.example/', 'https://label.sessions.example//evil.example/'],
    [below, '/a/%2e%2e/b', `https://proxy.example/${token}/a/%2e%2e/b`],
    [below, '/', below],
  ])('%s and %s make %s', (url, path, expected) => {
    expect(urlBelow(url, path)).toBe(expected);
  });

  test.each([
    ['no path', undefined],
    ['several', ['/a', '/b']],
    ['a host', 'evil.example'],
    ['a host behind a user name', '@evil.example/'],
    ['a port', ':1/'],
    ['a label of a host', '.evil.example/'],
  ])('%s leads to the session itself', (_name, path) => {
    expect(urlBelow(host, path)).toBe(host);
    expect(urlBelow(below, path)).toBe(below);
  });

  test.each(['/../other/', '/a/../../other/', '/%2e%2e/other/', '/..\\other'])(
    '%s does not lead out of the session',
    (path) => {
      expect(urlBelow(below, path)).toBe(below);
    },
  );
});
