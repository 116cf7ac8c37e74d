import { expect, test } from 'vitest';
import { accessTokenDocument, hashToken, isUsable, looksLikeAccessToken, newAccessToken } from './access-token.ts';

const now = new Date('2026-01-01T00:00:00.000Z');
const token = newAccessToken();
const document = accessTokenDocument(token, { account: 'acme', name: 'ci', scopes: ['read'] }, now);

test('a new access token is recognised, and stored by its hash alone', () => {
  expect(looksLikeAccessToken(token)).toBe(true);
  expect(document.id).toBe(hashToken(token));
  expect(JSON.stringify(document)).not.toContain(token);
  expect(token.startsWith(document.hint)).toBe(true);
});

test('a mistyped access token is recognised without a look-up', () => {
  for (let i = 0; i < token.length; i += 1) {
    const mistyped = token.slice(0, i) + (token[i] === 'x' ? 'y' : 'x') + token.slice(i + 1);
    expect(looksLikeAccessToken(mistyped)).toBe(false);
  }
  expect(looksLikeAccessToken(`${token}x`)).toBe(false);
  expect(looksLikeAccessToken('')).toBe(false);
});

test('an access token is usable until it expires or is revoked', () => {
  expect(isUsable(document, now)).toBe(true);
  expect(isUsable({ ...document, expiresAt: now }, now)).toBe(false);
  expect(isUsable({ ...document, revokedAt: now }, now)).toBe(false);
});
