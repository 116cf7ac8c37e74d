import { createHmac, randomBytes } from 'node:crypto';
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

test('a grant comes back as it was issued, until it expires', async () => {
  const token = await grants.issue(grant, 60, now);
  expect(await grants.verify(token, now)).toEqual(grant);
  expect(await grants.verify(token, new Date(now.getTime() + 61_000))).toBeUndefined();
});

test('a grant of another platform is refused', async () => {
  const token = await new RegistryGrants(new PlatformSecret(randomBytes(32))).issue(grant, 60, now);
  expect(await grants.verify(token, now)).toBeUndefined();
});

test('forgeries are refused: no algorithm, another algorithm, another audience, changed claims', async () => {
  const [header, payload, signature] = (await grants.issue(grant, 60, now)).split('.') as [string, string, string];
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  const sign = (body: string) =>
    createHmac('sha256', secret.keyFor('registry grants')).update(body).digest('base64url');
  const elsewhere = `${header}.${encode({ ...claims, aud: 'somewhere-else' })}`;
  const forgeries = [
    `${encode({ alg: 'none', typ: 'JWT' })}.${payload}.`,
    `${encode({ alg: 'HS512', typ: 'JWT' })}.${payload}.${signature}`,
    `${header}.${encode({ ...claims, sub: 'other' })}.${signature}`,
    `${elsewhere}.${sign(elsewhere)}`,
    'not a token',
    '',
  ];
  for (const forgery of forgeries) expect(await grants.verify(forgery, now)).toBeUndefined();
});

test('the platform secret must be long, and gives every purpose its own key', () => {
  expect(() => new PlatformSecret(randomBytes(31))).toThrow('at least 32 bytes');
  expect(secret.keyFor('one')).not.toEqual(secret.keyFor('two'));
  expect(secret.deriver('one')('text')).toBe(secret.deriver('one')('text'));
  expect(secret.deriver('one')('text')).not.toBe(secret.deriver('two')('text'));
});
