import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import { accessTokens, hashToken, revoke } from '../../model/access-token.ts';
import { RegistryGrants } from '../../model/registry-grant.ts';
import { openTestRegistry, pushBlob, pushImage, sha256 } from '../../test/kit/registry/registry.ts';
import type { Answer, TestRegistry } from '../../test/kit/registry/registry.ts';

let registry: TestRegistry;
let digest: string;
beforeAll(async () => {
  registry = await openTestRegistry();
  digest = (await pushBlob(registry, 'acme/draw', 'bytes')).digest;
  await pushImage(registry, { repository: 'acme/draw', reference: 'latest' });
});
afterAll(async () => await registry[Symbol.asyncDispose]());

interface TokenAnswer {
  readonly token: string;
  readonly access_token: string;
  readonly expires_in: number;
  readonly issued_at: string;
  readonly scope: string;
}

const parse = (answer: Answer) => JSON.parse(answer.body.toString()) as TokenAnswer;

async function grantFor(query: string, authorization?: string): Promise<TokenAnswer> {
  const answer = await registry.send(`/token?${query}`, { headers: authorization ? { authorization } : {} });
  expect(answer.status).toBe(200);
  return parse(answer);
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test('/v2/ answers a challenge; on every other request the challenge names the scope', async () => {
  const ping = await registry.send('/v2/');
  const realm = `Bearer realm="http://${registry.host}/token",service="berth-registry"`;
  expect([ping.status, ping.headers['www-authenticate'], ping.code]).toEqual([401, realm, 'UNAUTHORIZED']);
  expect(ping.headers['docker-distribution-api-version']).toBe('registry/2.0');
  const pull = await registry.send(`/v2/acme/draw/blobs/${digest}`);
  expect(pull.headers['www-authenticate']).toBe(`${realm},scope="repository:acme/draw:pull"`);
  const push = await registry.send('/v2/acme/draw/manifests/v1', { method: 'PUT', body: '{}' });
  expect(push.headers['www-authenticate']).toBe(`${realm},scope="repository:acme/draw:pull,push"`);
  const mount = await registry.send(`/v2/acme/b/blobs/uploads/?mount=${digest}&from=acme/draw`, { method: 'POST' });
  expect(mount.headers['www-authenticate']).toContain('scope="repository:acme/b:pull,push repository:acme/draw:pull"');
});

test('a target that names the host is served, and the challenge contains that host', async () => {
  const [host = '', port] = registry.host.split(':');
  const client = request({
    host,
    port,
    path: 'http://registry.example/v2/',
    headers: { host: 'other.example' },
    agent: false,
  });
  const [answer] = (await once(client.end(), 'response')) as [IncomingMessage];
  answer.resume();
  const realm = 'Bearer realm="http://registry.example/token",service="berth-registry"';
  expect([answer.statusCode, answer.headers['www-authenticate']]).toEqual([401, realm]);
});

test('a client requests a grant with its credentials and pulls with it', async () => {
  const query = 'account=acme&client_id=docker&offline_token=true&service=x&scope=repository:acme/draw:push,pull';
  const grant = await grantFor(query, registry.basic('acme', registry.token));
  expect(grant.access_token).toBe(grant.token);
  expect(grant.expires_in).toBeGreaterThanOrEqual(60);
  expect(grant.scope).toBe('repository:acme/draw:pull,push');
  expect((await registry.send('/v2/', bearer(grant.token))).status).toBe(200);
  expect((await registry.send(`/v2/acme/draw/blobs/${digest}`, bearer(grant.token))).status).toBe(200);
  const lacking = await registry.send(`/v2/acme/draw/blobs/${digest}`, { method: 'DELETE', ...bearer(grant.token) });
  expect([lacking.status, lacking.code, lacking.headers['www-authenticate']]).toEqual([
    401,
    'DENIED',
    expect.stringMatching(/scope="repository:acme\/draw:delete",error="insufficient_scope"/),
  ]);
});

test('a grant to push may delete a manifest, a grant to pull may not, and an anonymous grant gets a challenge', async () => {
  const manifests = '/v2/acme/draw/manifests';
  const codes = [];
  for (const login of [
    undefined,
    registry.basic('acme', await registry.addToken('acme', ['read'])),
    registry.basic('acme', registry.token),
  ]) {
    const grant = await grantFor('scope=repository:acme/draw:push,pull', login);
    codes.push((await registry.send(`${manifests}/absent`, { method: 'DELETE', ...bearer(grant.token) })).code);
  }
  expect(codes).toEqual(['UNAUTHORIZED', 'DENIED', 'MANIFEST_UNKNOWN']);
});

test('a grant for one repository allows no access to another one with a similar name', async () => {
  const grant = await grantFor('scope=repository:acme/draw:pull', registry.basic('acme', registry.token));
  for (const repository of ['acme/draw2', 'acme/dra', 'other/draw']) {
    expect((await registry.send(`/v2/${repository}/tags/list`, bearer(grant.token))).status).toBe(401);
  }
});

test('grants several scopes, repeated or in one parameter, and omits scopes that it may not grant', async () => {
  const scopes = [
    'scope=repository:acme/a:pull&scope=repository:acme/a:push%20repository:acme/b:*',
    'scope=repository:other/c:pull&scope=registry:catalog:*&scope=repository:acme/a/b:pull&scope=*',
    'scope=repository:acmex/d:pull&scope=repository:acme:pull&scope=nonsense',
  ].join('&');
  const grant = await grantFor(scopes, registry.basic('acme', registry.token));
  expect(grant.scope).toBe('repository:acme/a:pull,push repository:acme/b:pull,push,delete registry:catalog:*');
  const reader = await registry.addToken('acme', ['read']);
  expect((await grantFor(scopes, registry.basic('acme', reader))).scope).toBe(
    'repository:acme/a:pull repository:acme/b:pull registry:catalog:*',
  );
  const ofOther = await registry.addToken('other', ['connect']);
  expect((await grantFor(scopes, registry.basic('other', ofOther))).scope).toBe('');
  const anonymous = await grantFor(scopes);
  expect(anonymous.scope).toBe('');
  expect((await registry.send('/v2/', bearer(anonymous.token))).status).toBe(200);
  const endless = Array(40).fill('scope=repository:acme/a:pull').join('&');
  const refused = await registry.send(`/token?${endless}`, {
    headers: { authorization: registry.basic('acme', registry.token) },
  });
  expect(refused.status).toBe(400);
});

test('accepts every form in which tools send credentials', async () => {
  const { token } = registry;
  for (const authorization of [
    registry.basic('acme', token),
    registry.basic('anything', `acme:${token}`),
    registry.basic(token, ''),
    registry.basic(token, 'undefined'),
  ]) {
    const grant = await grantFor('scope=repository:acme/draw:pull', authorization);
    expect(grant.scope).toBe('repository:acme/draw:pull');
    expect((await registry.send('/v2/', { headers: { authorization } })).status).toBe(200);
  }
});

test('rejects wrong credentials', async () => {
  const revoked = await registry.addToken('acme', ['read']);
  await registry.store.update(accessTokens, hashToken(revoked), (token) => ({ ...token, revokedAt: new Date() }));
  const expired = await registry.addToken('acme', ['read']);
  await registry.store.update(accessTokens, hashToken(expired), (token) => ({ ...token, expiresAt: new Date() }));
  const withoutAccount = await registry.addToken('nobody', ['read']);
  for (const [user, password] of [
    ['acme', 'wrong'],
    ['acme', ''],
    ['', ''],
    ['other', registry.token],
    ['acme', `other:${registry.token}`],
    ['acme', registry.token.slice(0, -1)],
    ['acme', hashToken(registry.token)],
    ['acme', revoked],
    ['acme', expired],
    ['nobody', withoutAccount],
    ['__proto__', registry.token],
  ] as const) {
    const authorization = registry.basic(user, password);
    const answer = await registry.send('/token', { headers: { authorization } });
    expect([user, answer.status, answer.code]).toEqual([user, 401, 'UNAUTHORIZED']);
    expect((await registry.send('/v2/', { headers: { authorization } })).status).toBe(401);
  }
  for (const authorization of ['Basic', 'Basic !!!', 'Basic YWNtZQ==', 'Digest x', 'Bearer', 'Bearer a b']) {
    expect((await registry.send('/v2/', { headers: { authorization } })).status).toBe(401);
    expect((await registry.send('/token', { headers: { authorization } })).status).toBe(401);
  }
});

test('accepts the form that containerd sends, and a form with a refresh token', async () => {
  const post = async (form: Record<string, string>, headers = {}) =>
    await registry.send('/token', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8', ...headers },
      body: new URLSearchParams(form).toString(),
    });
  const scope = 'repository:acme/draw:pull repository:acme/b:push';
  const login = { grant_type: 'password', service: 'x', client_id: 'containerd-client', username: 'acme', scope };
  const granted = await post({ ...login, password: registry.token });
  expect([granted.status, parse(granted).scope]).toEqual([200, 'repository:acme/draw:pull repository:acme/b:push']);
  const refreshed = await post({ grant_type: 'refresh_token', refresh_token: registry.token, scope });
  expect([refreshed.status, parse(refreshed).scope]).toEqual([200, scope]);
  expect((await post({ ...login, password: 'wrong' })).status).toBe(401);
  expect((await post({ grant_type: 'authorization_code' })).status).toBe(400);
  expect((await post({}, { 'content-type': 'application/json' })).status).toBe(400);
  expect((await post({ ...login, password: 'x'.repeat(70_000) })).status).toBe(400);
});

test('rejects forged, foreign and expired grants', async () => {
  const access = [{ type: 'repository' as const, name: 'acme/draw', actions: ['pull' as const] }];
  const claims = { access, sub: 'acme', iss: 'berth', aud: 'berth-registry' };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const otherPlatform = new RegistryGrants(new PlatformSecret(Buffer.alloc(32, 8)));
  const now = new Date();
  const jwk = { kty: 'oct', k: Buffer.alloc(32).toString('base64url') };
  const forged = [
    `${part({ alg: 'none', typ: 'JWT' })}.${part({ ...claims, exp: now.getTime() })}.`,
    await otherPlatform.issue({ subject: 'acme', access }, 60, now),
    await registry.grants.issue({ subject: 'acme', access }, 60, new Date(now.getTime() - 120_000)),
    await new SignJWT({ access })
      .setProtectedHeader({ alg: 'HS256', jwk })
      .setSubject('acme')
      .setIssuer('berth')
      .setAudience('berth-registry')
      .setExpirationTime('1m')
      .sign(Buffer.alloc(32)),
    'x',
    'x.y.z',
  ];
  for (const token of forged) {
    expect((await registry.send(`/v2/acme/draw/blobs/${digest}`, bearer(token))).status).toBe(401);
  }
  const good = await registry.grants.issue({ subject: 'node-1', access }, 60, now);
  expect((await registry.send(`/v2/acme/draw/blobs/${digest}`, bearer(good))).status).toBe(200);
});

test('a client without access cannot distinguish a private repository from an absent one', async () => {
  const other = registry.basic('other', await registry.addToken('other', ['read', 'push']));
  const grant = await registry.grants.issue({ subject: 'other', access: [] }, 60, new Date());
  const paths = (repository: string) => [
    `/v2/${repository}/blobs/${digest}`,
    `/v2/${repository}/manifests/latest`,
    `/v2/${repository}/tags/list`,
    `/v2/${repository}/referrers/${digest}`,
  ];
  const seen = async (path: string, authorization: string) => {
    const { status, body } = await registry.send(path, { headers: { authorization } });
    return [status, body.toString()];
  };
  for (const authorization of [other, `Bearer ${grant}`]) {
    const hidden = await Promise.all(paths('acme/draw').map((path) => seen(path, authorization)));
    const absent = await Promise.all(paths('acme/none').map((path) => seen(path, authorization)));
    expect(hidden).toEqual(absent);
    expect(hidden.every(([status]) => status === (authorization === other ? 403 : 401))).toBe(true);
  }
});

test('a token that may only push can check for content and pull nothing', async () => {
  const authorization = registry.basic('acme', await registry.addToken('acme', ['push']));
  const blob = `/v2/acme/draw/blobs/${digest}`;
  expect((await registry.send(blob, { method: 'HEAD', headers: { authorization } })).status).toBe(200);
  const refused = await registry.send(blob, { headers: { authorization } });
  expect([refused.status, refused.code]).toEqual([403, 'DENIED']);
  const reader = registry.basic('acme', await registry.addToken('acme', ['read']));
  const upload = { method: 'POST', headers: { authorization: reader } };
  expect((await registry.send('/v2/acme/draw/blobs/uploads/', upload)).code).toBe('DENIED');
});

test('the realm is derived from the public URL, or else from a valid Host header', async () => {
  for (const host of ['a"b', 'evil/path', 'a b', 'user@host', '-x', `${'a'.repeat(300)}.example`]) {
    const answer = await registry.send('/v2/', { headers: { host } });
    expect([host, answer.status, answer.headers['www-authenticate']]).toEqual([host, 400, undefined]);
  }
  const forwarded = { host: '[::1]:5000', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example' };
  const answer = await registry.send('/v2/', { headers: forwarded });
  expect(answer.headers['www-authenticate']).toContain('realm="http://[::1]:5000/token"');
  await using proxied = await openTestRegistry({ publicUrl: 'https://registry.example.com' });
  const behind = await proxied.send('/v2/', { headers: { host: 'evil.example' } });
  expect(behind.headers['www-authenticate']).toContain('realm="https://registry.example.com/token"');
});

test('no log line contains a secret', async () => {
  await grantFor('scope=repository:acme/draw:pull', registry.basic('acme', registry.token));
  await registry.send(`/v2/acme/draw/blobs/${sha256('x')}?token=secret-in-query`, {
    headers: { authorization: registry.basic('acme', registry.token) },
  });
  await expect.poll(() => registry.logLines.some((line) => line.includes(sha256('x')))).toBe(true);
  const log = registry.logLines.join('');
  for (const secret of [registry.token, hashToken(registry.token), 'secret-in-query', 'Basic ', 'eyJ']) {
    expect(log).not.toContain(secret);
  }
});

test('a grant ends within a second after the revocation of its access token', async () => {
  // Cached tokens expire by the machine's time.
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const token = await registry.addToken('acme', ['read']);
  const grant = await grantFor('scope=repository:acme/draw:pull', registry.basic('acme', token));
  const pull = async () => (await registry.send(`/v2/acme/draw/blobs/${digest}`, bearer(grant.token))).status;
  expect(await pull()).toBe(200);
  await registry.store.update(accessTokens, hashToken(token), (current) => revoke(current, new Date()));
  vi.advanceTimersByTime(1_000);
  expect(await pull()).toBe(401);
});

test('an access token that is limited to services sees no other repository', async () => {
  const token = await registry.addToken('acme', ['read', 'push']);
  await registry.store.update(accessTokens, hashToken(token), (current) => ({ ...current, services: ['board'] }));
  const login = registry.basic('acme', token);
  const grant = await grantFor('scope=repository:acme/draw:pull,push%20repository:acme/board:pull,push', login);
  expect(grant.scope).toBe('repository:acme/board:pull,push');
  for (const authorization of [login, `Bearer ${grant.token}`]) {
    const seen = await registry.send(`/v2/acme/draw/blobs/${digest}`, { headers: { authorization } });
    const absent = await registry.send(`/v2/acme/absent/blobs/${digest}`, { headers: { authorization } });
    expect([seen.status, seen.code]).toEqual([absent.status, absent.code]);
    expect(seen.status).toBeGreaterThanOrEqual(401);
    const mount = `/v2/acme/board/blobs/uploads/?mount=${digest}&from=acme/draw`;
    const mounted = await registry.send(mount, { method: 'POST', headers: { authorization } });
    expect(mounted.status).not.toBe(201);
    if (authorization !== login) continue;
    const catalog = await registry.send('/v2/_catalog', { headers: { authorization } });
    expect([catalog.status, catalog.body.toString()]).toEqual([200, '{"repositories":[]}']);
  }
});
