import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { usedIdTokens } from '../../model/used-id-token.ts';
import { ownPage } from '../testing/people.ts';
import { connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

/** An issuer of ID tokens, like GitHub. */
async function openIssuer() {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'key-1', alg: 'RS256' };
  const server = createServer((request, response) => {
    const isKeys = request.url === '/.well-known/jwks';
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(isKeys ? { keys: [jwk] } : { issuer: url, jwks_uri: `${url}/.well-known/jwks` }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sign = async (claims: Record<string, unknown>, audience: string, key = privateKey) => {
    const seconds = Math.floor(Date.now() / 1000);
    return await new SignJWT({ iss: url, aud: audience, iat: seconds, exp: seconds + 300, ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'key-1' })
      .sign(key);
  };
  return { url, sign, [Symbol.asyncDispose]: async () => void server.close() };
}

const main = { repository: 'acme/draw', ref: 'refs/heads/main', environment: 'production' };

let issuer: Awaited<ReturnType<typeof openIssuer>>;
let api: TestApi;
beforeAll(async () => {
  issuer = await openIssuer();
});
afterAll(async () => await issuer[Symbol.asyncDispose]());
beforeEach(async () => {
  api = await openTestApi({ oidcIssuers: [issuer.url] });
  return async () => await api[Symbol.asyncDispose]();
});

async function trust(fields: object) {
  return await api.post('/v2/account/acme/trust', { issuer: issuer.url, repository: 'acme/draw', ...fields });
}

async function exchange(idToken: string, account = 'acme') {
  const body = JSON.stringify({ id_token: idToken });
  return await api.call('POST', `/v2/account/${account}/oidc-token`, {
    headers: { 'content-type': ownPage['content-type'] },
    body,
  });
}

describe('trust rules', () => {
  test('let a deployment exchange its ID token for a deploy token that pushes and deploys its services', async () => {
    const rule = await trust({ branch: 'main', environment: 'Production', services: ['draw'] });
    expect([rule.status, rule.body]).toEqual([
      201,
      {
        id: expect.stringMatching(/^[0-9a-f]{20}$/),
        issuer: issuer.url,
        repository: 'acme/draw',
        branch: 'main',
        environment: 'Production',
        scopes: ['push', 'deploy'],
        services: ['draw'],
        lifetime_seconds: 900,
        created_at: expect.any(String),
      },
    ]);
    const { status, body } = await exchange(await issuer.sign(main, api.base));
    expect([status, body]).toEqual([
      201,
      {
        token: expect.stringMatching(/^acme\.berth_dep_\w{49}$/),
        scopes: ['push', 'deploy'],
        services: ['draw'],
        expires_at: expect.any(String),
      },
    ]);
    expect(Date.parse(body.expires_at) - Date.now()).toBeLessThanOrEqual(900_000);
    expect((await api.post('/v2/service/acme/draw/update', { image_tag: 'latest' }, body.token)).status).toBe(200);
    expect((await api.post(connectPath, {}, body.token)).status).toBe(403);
    const minted = await api.post('/v2/account/acme/token', { name: 'x', scopes: ['push'] }, body.token);
    expect(minted.status).toBe(403);
    const { records } = (await api.get('/v2/account/acme/audit')).body;
    expect(records.find(({ action }: { action: string }) => action === 'exchangeIdToken')).toMatchObject({
      details: { rule_id: rule.body.id, ...main },
      status: 201,
    });
  });

  test.each([
    ['another repository', { repository: 'acme/other' }],
    ['a fork', { repository: 'eve/draw' }],
    ['another branch', { ref: 'refs/heads/dev' }],
    ['a tag with the name of the branch', { ref: 'refs/tags/main' }],
    ['a pull request', { ref: 'refs/pull/1/merge' }],
    ['another environment', { environment: 'staging' }],
    ['no environment', { environment: undefined }],
  ])('reject %s', async (_name, claims) => {
    await trust({ branch: 'main', environment: 'production' });
    const { status, body } = await exchange(await issuer.sign({ ...main, ...claims }, api.base));
    expect([status, body.error.code]).toEqual([403, 'Forbidden']);
  });

  test('reject ID tokens that are not for this platform, expired, forged or of another issuer', async () => {
    await trust({});
    const seconds = Math.floor(Date.now() / 1000);
    const { privateKey } = await generateKeyPair('RS256');
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(
      JSON.stringify({ ...main, iss: issuer.url, aud: api.base, iat: seconds, exp: seconds + 300 }),
    ).toString('base64url')}.`;
    const hostile = [
      await issuer.sign(main, 'https://other.example'),
      await issuer.sign({ ...main, exp: seconds - 60 }, api.base),
      await issuer.sign({ ...main, iat: seconds - 2000 }, api.base),
      await issuer.sign(main, api.base, privateKey),
      await issuer.sign({ ...main, iss: 'http://127.0.0.1:1' }, api.base),
      await issuer.sign({ repository: 1 }, api.base),
      unsigned,
      'x',
    ];
    for (const token of hostile) {
      const { status, body } = await exchange(token);
      expect([status, body.error.code]).toEqual([401, 'Unauthorized']);
    }
  });

  test('accept each ID token once, also from concurrent requests', async () => {
    await trust({});
    for (const claims of [{ jti: 'one' }, { jti: undefined }]) {
      const token = await issuer.sign({ ...main, ...claims }, api.base);
      const replies = await Promise.all([exchange(token), exchange(token), exchange(token, 'acme')]);
      expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 401, 401]);
      expect((await exchange(token)).body.error.message).toContain('it was used before');
    }
    expect((await exchange(await issuer.sign({ ...main, jti: 'one', ref: 'x' }, api.base))).status).toBe(401);
    expect((await exchange(await issuer.sign({ ...main, jti: 'two' }, api.base))).status).toBe(201);
    const [used, ...others] = await api.store.find(usedIdTokens, { index: 'byEnd' });
    expect(others).toHaveLength(2);
    expect((used?.endsAt.getTime() ?? 0) - Date.now()).toBeLessThanOrEqual(330_000);
  });

  test('answer 429 to a network that sends invalid ID tokens, and still accept its valid ones', async () => {
    await using limited = await openTestApi({ oidcIssuers: [issuer.url], invalidTokensPerMinute: 3 });
    await limited.post('/v2/account/acme/trust', { issuer: issuer.url, repository: 'acme/draw' });
    const send = async (idToken: string) => {
      const body = JSON.stringify({ id_token: idToken });
      return await limited.call('POST', '/v2/account/acme/oidc-token', { headers: ownPage, body });
    };
    const statuses = [];
    for (let i = 0; i < 5; i += 1) statuses.push((await send('x')).status);
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    expect((await send(await issuer.sign(main, limited.base))).status).toBe(201);
  });

  test('belong to one account, and end when they are deleted', async () => {
    const { id } = (await trust({})).body;
    const token = await issuer.sign(main, api.base);
    expect((await exchange(token, 'other')).status).toBe(403);
    expect((await exchange(token)).status).toBe(201);
    const otherToken = await api.tokenFor('other', ['manage']);
    const absent = await api.post(`/v2/account/other/trust/${id}/delete`, undefined, otherToken);
    expect(absent.body.error.code).toBe('TrustRuleNotFound');
    expect((await api.get('/v2/account/acme/trusts')).body.rules).toHaveLength(1);
    expect((await api.post(`/v2/account/acme/trust/${id}/delete`)).body).toEqual({ status: 'ok' });
    expect((await exchange(token)).status).toBe(403);
  });

  test.each([
    ['issuer', { issuer: 'https://evil.example' }],
    ['issuer', { issuer: 'x' }],
    ['repository', { repository: 'draw' }],
    ['repository', { repository: 'acme/*' }],
    ['branch', { branch: '' }],
    ['scopes.0', { scopes: ['manage'] }],
    ['lifetime_seconds', { lifetime_seconds: 901 }],
  ])('are rejected with the name of the field: %s, %j', async (field, fields) => {
    const { status, body } = await trust(fields);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(`${field}: `)]);
  });
});
