import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { labelOfToken, tokenOfHost, tokenOfLabel } from './session-host.ts';

const newToken = () => randomBytes(32).toString('base64url');

test('a label is the base32 of RFC 4648, in lower case', () => {
  const token = Buffer.from('foobar'.padEnd(32, '\0')).toString('base64url');
  expect(labelOfToken(token)).toBe(`mzxw6ytboi${'a'.repeat(42)}`);
});

test('every token has a label that DNS allows, and the label decodes to the token, in upper or lower case', () => {
  for (let i = 0; i < 1_000; i += 1) {
    const token = newToken();
    const label = labelOfToken(token);
    expect(label).toMatch(/^[a-z2-7]{52}$/);
    expect(tokenOfLabel(label)).toBe(token);
    expect(tokenOfLabel(label.toUpperCase())).toBe(token);
  }
});

test('each character of a label is significant: no other label has the same token', () => {
  const token = newToken();
  const label = labelOfToken(token);
  const others = label.split('').flatMap((own, at) =>
    'abcdefghijklmnopqrstuvwxyz234567'
      .split('')
      .filter((other) => other !== own)
      .map((other) => tokenOfLabel(label.slice(0, at) + other + label.slice(at + 1))),
  );
  expect(others).toHaveLength(52 * 31);
  expect(others).not.toContain(token);
});

const token = newToken();
const label = labelOfToken(token);

test.each([
  `${label}.localhost`,
  `${label}.localhost:7102`,
  `${label}.LOCALHOST:7102`,
  `${label.toUpperCase()}.Localhost.`,
  `${label}.localhost.:80`,
])('is the host of a session: %s', (host) => {
  expect(tokenOfHost(host, 'localhost')).toBe(token);
});

test.each([
  'localhost',
  label,
  `${label}.`,
  `${label}.localhos`,
  `${label}.localhost.evil.example`,
  `${label}.localhostile`,
  `${label}.notlocalhost`,
  `${label}.localhost:80:80`,
  `${label}.localhost@evil.example`,
  `${label}.localhost/`,
  `x.${label}.localhost`,
  `${label}..localhost`,
  `user@${label}.localhost`,
  `${label.slice(1)}.localhost`,
  `${label}a.localhost`,
  `${'1'.repeat(52)}.localhost`,
  `${label.slice(0, 51)}b.localhost`,
  '',
])('is not the host of a session: %s', (host) => {
  expect(tokenOfHost(host, 'localhost')).toBeUndefined();
});

test('a domain may have several labels', () => {
  expect(tokenOfHost(`${label}.sessions.example.com:443`, 'sessions.example.com')).toBe(token);
  expect(tokenOfHost(`${label}.example.com`, 'sessions.example.com')).toBeUndefined();
});
