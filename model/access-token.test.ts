import { expect, test } from 'vitest';
import {
  accessTokenDocument,
  hashToken,
  isUsable,
  newSecret,
  recordUse,
  parseToken,
  publicTokenId,
  revoke,
  tokenText,
} from './access-token.ts';

const now = new Date('2026-01-01T00:00:00.000Z');
const token = newSecret('access');
const document = accessTokenDocument(token, { account: 'acme', name: 'ci', scopes: ['read'] }, now);

test('a new access token is recognised, and stored only by its hash', () => {
  expect(parseToken(token)).toEqual({ secret: token });
  expect(document.id).toBe(hashToken(token));
  expect(JSON.stringify(document)).not.toContain(token);
  expect(token.startsWith(document.hint)).toBe(true);
});

test('a mistyped access token is recognised without a look-up', () => {
  for (let i = 0; i < token.length; i += 1) {
    const mistyped = token.slice(0, i) + (token[i] === 'x' ? 'y' : 'x') + token.slice(i + 1);
    expect(parseToken(mistyped)).toBeUndefined();
  }
  expect(parseToken(`${token}x`)).toBeUndefined();
  expect(parseToken('')).toBeUndefined();
  expect(parseToken(`${'a'.repeat(10_000)}.${token}`)).toBeUndefined();
});

test('an access token is usable until it expires or is revoked', () => {
  expect(isUsable(document, now)).toBe(true);
  expect(isUsable({ ...document, expiresAt: now }, now)).toBe(false);
  expect(isUsable({ ...document, revokedAt: now }, now)).toBe(false);
});

test('a token is issued with its account as a prefix, which may contain dots', () => {
  expect(parseToken(tokenText(token, 'acme'))).toEqual({ account: 'acme', secret: token });
  expect(parseToken(tokenText(token, 'acme.example'))).toEqual({ account: 'acme.example', secret: token });
  expect(accessTokenDocument(tokenText(token, 'acme'), { name: 'ci', scopes: ['read'] }, now).id).toBe(document.id);
});

test('a revocation keeps the time of the first one, and the end of a token that had expired', () => {
  const later = new Date(now.getTime() + 1000);
  const revoked = revoke(document, now);
  expect(isUsable(revoked, now)).toBe(false);
  expect(revoke(revoked, later)).toBe(revoked);
  expect(revoke({ ...document, expiresAt: now, endsAt: now }, later)).toMatchObject({ revokedAt: later, endsAt: now });
});

test('the last use is recorded to a minute', () => {
  const used = recordUse(document, now);
  expect(used.lastUsedAt).toEqual(now);
  expect(recordUse(used, new Date(now.getTime() + 59_999))).toBe(used);
  expect(recordUse(used, new Date(now.getTime() + 60_000)).lastUsedAt).toEqual(new Date(now.getTime() + 60_000));
});

test('the ID for clients is the beginning of the hash', () => {
  expect(document.id.startsWith(publicTokenId(document))).toBe(true);
  expect(publicTokenId(document)).toMatch(/^[0-9a-f]{20}$/);
});
