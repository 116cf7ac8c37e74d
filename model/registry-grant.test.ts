import { createHmac, randomBytes } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { expect, test } from 'vitest';
import { PlatformSecret } from '../core/secret/platform-secret.ts';
import { RegistryGrants } from './registry-grant.ts';
import type { RegistryGrant } from './registry-grant.ts';

const secret = new PlatformSecret(randomBytes(32));
const grants = new RegistryGrants(secret);
const now = new Date('2026-01-01T00:00:00.000Z');
const grant: RegistryGrant = {
  subject: 'acme',
  access: [{ type: 'repository', name: 'acme/draw', actions: ['pull'] }],
};

test('a grant is valid as it was issued, until it expires', async () => {
  const token = await grants.issue(grant, 60, now);
  expect(await grants.verify(token, now)).toEqual(grant);
  expect(await grants.verify(token, new Date(now.getTime() + 61_000))).toBeUndefined();
});

test('a grant contains whether it may mount from all repositories of its account', async () => {
  const mounting: RegistryGrant = { ...grant, mountsOwn: true };
  expect(await grants.verify(await grants.issue(mounting, 60, now), now)).toEqual(mounting);
});

test('a grant of another platform is rejected', async () => {
  const token = await new RegistryGrants(new PlatformSecret(randomBytes(32))).issue(grant, 60, now);
  expect(await grants.verify(token, now)).toBeUndefined();
});

test('forgeries are rejected: no algorithm, another algorithm, another audience, changed claims', async () => {
  const [header, payload, signature] = (await grants.issue(grant, 60, now)).split('.') as [string, string, string];
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  const sign = (body: string, key = secret.keyFor('registry grants 2026-01-01')) =>
    `${body}.${createHmac('sha256', key).update(body).digest('base64url')}`;
  const own = { alg: 'HS256', typ: 'JWT', kid: '2026-01-01' };
  // A correct token that is signed here is accepted. Otherwise the forgeries would prove nothing.
  expect(await grants.verify(sign(`${encode(own)}.${payload}`), now)).toEqual(grant);
  const withHeader = (fields: object, key?: Buffer) => sign(`${encode({ ...own, ...fields })}.${payload}`, key);
  const withClaims = (fields: object) => sign(`${header}.${encode({ ...claims, ...fields })}`);
  const theirs = Buffer.alloc(32, 1);
  const jwk = { kty: 'oct', k: theirs.toString('base64url') };
  const forgeries = [
    `${encode({ alg: 'none', typ: 'JWT' })}.${payload}.`,
    `${encode({ alg: 'HS512', typ: 'JWT' })}.${payload}.${signature}`,
    `${header}.${encode({ ...claims, sub: 'other' })}.${signature}`,
    withClaims({ aud: 'somewhere-else' }),
    withClaims({ iss: 'another-issuer' }),
    withClaims({ exp: undefined }),
    withClaims({ access: [{ type: 'repository', name: 'acme/draw', actions: ['pull', '*'] }] }),
    withClaims({ access: [{ type: 'registry', name: 'other', actions: ['*'] }] }),
    withClaims({ mounts_own: 'yes' }),
    withHeader({ typ: 'at+jwt' }),
    withHeader({ typ: undefined }),
    withHeader({ kid: undefined }),
    withHeader({ kid: '../../dev/null' }, secret.keyFor('registry grants ../../dev/null')),
    withHeader({ kid: '2026-01-01 ' }, secret.keyFor('registry grants 2026-01-01 ')),
    withHeader({ kid: '+002026-01-01' }, secret.keyFor('registry grants +002026-01-01')),
    withHeader({ jwk }),
    withHeader({ jwk }, theirs),
    withHeader({ jku: 'https://evil.example/keys' }),
    withHeader({ x5c: ['AAAA'] }),
    withHeader({ crit: ['exp'] }),
    'not a token',
    '',
  ];
  for (const forgery of forgeries) expect(await grants.verify(forgery, now)).toBeUndefined();
});

test('each day has its own key, which all processes accept as long as its grants are valid', async () => {
  const otherProcess = new RegistryGrants(secret);
  const at = (hours: number) => new Date(now.getTime() + hours * 3_600_000);
  const kidOf = (token: string) => decodeProtectedHeader(token).kid;
  const token = await grants.issue(grant, 25 * 3600, at(23.9));
  expect(kidOf(token)).toBe('2026-01-01');
  expect(kidOf(await grants.issue(grant, 60, at(24)))).toBe('2026-01-02');
  // During the whole life of the grant, and in a process whose clock is behind, but not later.
  for (const hours of [-0.1, 23.9, 24, 48, 48.8]) {
    expect(await new RegistryGrants(secret).verify(token, at(hours))).toEqual(grant);
  }
  expect(await otherProcess.verify(token, at(48.91))).toBeUndefined();
  // A grant with a later expiry, signed with the stolen key of an old day, is rejected as well.
  const payload = Buffer.from(JSON.stringify({ ...decodeJwt(token), exp: 9_999_999_999 })).toString('base64url');
  const body = `${token.split('.')[0]}.${payload}`;
  const key = secret.keyFor('registry grants 2026-01-01');
  const stolen = `${body}.${createHmac('sha256', key).update(body).digest('base64url')}`;
  expect(await otherProcess.verify(stolen, at(47))).toEqual(grant);
  expect(await new RegistryGrants(secret).verify(stolen, at(72))).toBeUndefined();
  expect(await otherProcess.verify(stolen, at(72))).toBeUndefined();
});

test('no grant outlives its key', async () => {
  await expect(grants.issue(grant, 25 * 3600 + 1, now)).rejects.toThrow(RangeError);
});

test('a cached grant still expires, and a rejected one stays rejected', async () => {
  const fresh = new RegistryGrants(secret);
  const token = await fresh.issue(grant, 60, now);
  const at = (seconds: number) => new Date(now.getTime() + seconds * 1000);
  const first = await fresh.verify(token, at(1));
  expect(await fresh.verify(token, at(59.9))).toBe(first);
  expect(await fresh.verify(token, at(60))).toBeUndefined();
  expect(await fresh.verify(`${token}x`, at(1))).toBeUndefined();
  expect(await fresh.verify(token.slice(0, -1), at(1))).toBeUndefined();
});

test('the platform secret must be long, and derives a separate key for every purpose', () => {
  expect(() => new PlatformSecret(randomBytes(31))).toThrow('at least 32 bytes');
  expect(secret.keyFor('one')).not.toEqual(secret.keyFor('two'));
  expect(secret.deriver('one')('text')).toBe(secret.deriver('one')('text'));
  expect(secret.deriver('one')('text')).not.toBe(secret.deriver('two')('text'));
});
