/** Bearer tokens that are forged, expired, or issued for another purpose. */
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { SignJWT, UnsecuredJWT, exportJWK } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import { accessTokens, hashToken } from '../../model/access-token.ts';
import { openTestRegistry, pushImage } from '../kit/registry/registry.ts';
import type { TestRegistry } from '../kit/registry/registry.ts';

const clock = new ManualClock(new Date());
/** The key of today's grants, which no client has. It lets tests forge tokens that are wrong in one part only. */
const kid = clock.now().toISOString().slice(0, 10);
const secret = new PlatformSecret(Buffer.alloc(32, 7));
const key = secret.keyFor(`registry grants ${kid}`);
const rightHead = { alg: 'HS256', typ: 'JWT', kid };
const access = [{ type: 'repository', name: 'acme/draw', actions: ['pull', 'push', 'delete'] }];
const claims = { access, sub: 'acme', iss: 'berth', aud: 'berth-registry' };
const inAnHour = () => Math.floor(clock.now().getTime() / 1000) + 3_600;

let registry: TestRegistry;
beforeAll(async () => {
  registry = await openTestRegistry({ clock });
  await pushImage(registry, { repository: 'acme/draw', reference: 'latest' });
});
afterAll(async () => await registry[Symbol.asyncDispose]());

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token with this head, signed with HS256 and this key. */
function signed(head: object, payload: object = { ...claims, exp: inAnHour() }, by: Buffer = key): string {
  const text = `${part(head)}.${part(payload)}`;
  return `${text}.${createHmac('sha256', by).update(text).digest('base64url')}`;
}

async function statusWith(token: string, path = '/v2/acme/draw/tags/list'): Promise<number> {
  return (await registry.send(path, { headers: { authorization: `Bearer ${token}` } })).status;
}

test('a valid token grants what it lists', async () => {
  expect(await statusWith(signed(rightHead))).toBe(200);
});

test('tokens that are wrong in one part are rejected', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = await exportJWK(publicKey);
  const right = signed(rightHead);
  const [head = '', payload = '', signature = ''] = right.split('.');
  const exp = inAnHour();
  const wrong: Record<string, string> = {
    'no algorithm': new UnsecuredJWT({ ...claims, exp }).encode(),
    'no algorithm, with a signature': signed({ ...rightHead, alg: 'none' }),
    'no algorithm, in another case': signed({ ...rightHead, alg: 'nOnE' }),
    'another algorithm': signed({ ...rightHead, alg: 'HS512' }),
    'a key in its head': signed(
      { alg: 'HS256', jwk: { kty: 'oct', k: Buffer.alloc(32).toString('base64url') } },
      undefined,
      Buffer.alloc(32),
    ),
    'the path of a key': signed({ ...rightHead, kid: '../../dev/null' }, undefined, Buffer.alloc(0)),
    'the URL of a key': signed({ ...rightHead, jku: `http://${registry.host}/token` }, undefined, Buffer.alloc(32)),
    'a public key in its head': await new SignJWT({ ...claims, exp })
      .setProtectedHeader({ alg: 'RS256', jwk })
      .sign(privateKey),
    'a critical extension in its head': signed({ ...rightHead, crit: ['x'], x: 1 }),
    'more rights under the same signature': `${head}.${part({ ...claims, sub: 'other', exp })}.${signature}`,
    'no signature': `${head}.${payload}.`,
    'another issuer': signed(rightHead, { ...claims, iss: 'another', exp }),
    'no issuer': signed(rightHead, { ...claims, iss: undefined, exp }),
    'another audience': signed(rightHead, { ...claims, aud: 'another-registry', exp }),
    'no audience': signed(rightHead, { ...claims, aud: undefined, exp }),
    expired: signed(rightHead, { ...claims, exp: exp - 7_200 }),
    'not yet valid': signed(rightHead, { ...claims, exp, nbf: exp }),
    'no expiry': signed(rightHead, claims),
    'an expiry that is text': signed(rightHead, { ...claims, exp: String(exp) }),
    'no subject': signed(rightHead, { ...claims, sub: undefined, exp }),
    'rights that are not a list': signed(rightHead, { ...claims, access: { 'acme/draw': 'pull' }, exp }),
    'rights of an unknown kind': signed(
      { alg: 'HS256' },
      { ...claims, access: [{ ...access[0], type: 'registry' }], exp },
    ),
    'rights to everything': signed(rightHead, { ...claims, access: [{ ...access[0], actions: ['*'] }], exp }),
    'the key of another purpose': signed({ alg: 'HS256' }, undefined, secret.keyFor('secret tokens')),
    'a trailing space': `${right}\u00a0`,
    'an excessive length': `${head}.${'A'.repeat(10_000)}.${signature}`,
  };
  for (const [what, token] of Object.entries(wrong)) expect([what, await statusWith(token)]).toEqual([what, 401]);
});

test('names with wildcards, or prefixes of names, grant nothing', async () => {
  for (const name of ['*', 'acme/*', 'acme', 'acme/', 'acme/dra', 'ACME/DRAW', 'acme/draw/', '']) {
    const token = signed(rightHead, { ...claims, access: [{ ...access[0], name }], exp: inAnHour() });
    expect([name, await statusWith(token)]).toEqual([name, 401]);
  }
});

test('no requested scope grants more than the access token allows', async () => {
  const authorization = registry.basic('acme', await registry.addToken('acme', ['read']));
  for (const [scope, granted] of [
    ['*', ''],
    ['repository:*:*', ''],
    ['repository:acme/*:pull', ''],
    ['repository:acme/draw:*', 'repository:acme/draw:pull'],
    ['repository:acme/draw:pull,push,delete', 'repository:acme/draw:pull'],
    ['repository:other/draw:pull', ''],
    ['repository:acme/../other/draw:pull', ''],
    ['repository:acme%2fdraw:pull', ''],
    // The catalog lists only the account's repositories.
    ['registry:catalog:*', 'registry:catalog:*'],
    ['registry:catalog:pull', ''],
    ['registry:*:*', ''],
  ]) {
    const answer = await registry.send(`/token?scope=${encodeURIComponent(scope ?? '')}`, {
      headers: { authorization },
    });
    const body = JSON.parse(answer.body.toString()) as { scope: string };
    expect([scope, answer.status, body.scope]).toEqual([scope, 200, granted]);
  }
});

test('after an access token is revoked or narrowed, its grants expire within minutes, and it receives no new grants', async () => {
  const revoked = await registry.addToken('acme', ['read', 'push']);
  const narrowed = await registry.addToken('acme', ['read', 'push']);
  const exchange = async (token: string) => {
    const scope = 'scope=repository:acme/draw:pull,push';
    const answer = await registry.send(`/token?${scope}`, {
      headers: { authorization: registry.basic('acme', token) },
    });
    return { status: answer.status, ...(JSON.parse(answer.body.toString()) as { token: string; scope?: string }) };
  };
  const [before, wide] = [await exchange(revoked), await exchange(narrowed)];
  expect([await statusWith(before.token), await statusWith(wide.token)]).toEqual([200, 200]);
  await registry.store.update(accessTokens, hashToken(revoked), (token) => ({ ...token, revokedAt: clock.now() }));
  await registry.store.update(accessTokens, hashToken(narrowed), (token) => ({ ...token, scopes: ['read'] as const }));
  expect((await exchange(revoked)).status).toBe(401);
  expect((await exchange(narrowed)).scope).toBe('repository:acme/draw:pull');
  await clock.advance(301_000);
  expect([await statusWith(before.token), await statusWith(wide.token)]).toEqual([401, 401]);
});
