/** Transfers in progress when their access token is revoked, or its user loses the role. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { MockInstance } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { accessTokens, hashToken, revoke } from '../../model/access-token.ts';
import { accounts, withMember } from '../../model/account.ts';
import type { TokenChecks } from '../../model/token-checks.ts';
import { newUser, users, withAccount } from '../../model/user.ts';
import { openTestRegistry, pushBlob, sha256 } from '../../test/kit/registry/registry.ts';
import type { Answer, TestRegistry } from '../../test/kit/registry/registry.ts';

const uploads = '/v2/acme/draw/blobs/uploads/';
const type = 'application/vnd.oci.image.manifest.v1+json';

const clock = new ManualClock();
let registry: TestRegistry;
let watch: MockInstance<TokenChecks['watch']>;
beforeAll(async () => {
  registry = await openTestRegistry({ tokenClock: clock });
  watch = vi.spyOn(registry.tokens, 'watch');
});

afterAll(async () => await registry[Symbol.asyncDispose]());

/** Creates a user who is a member of the account, and a token of that user. */
async function addMember(name: string): Promise<{ token: string; user: string }> {
  const user = `${name}@example.com`;
  const token = await registry.addToken('acme', ['read', 'push']);
  await registry.store.insert(users, withAccount(newUser(user, { isAdmin: false }, new Date()), 'acme'));
  await setRole(user, 'member');
  await registry.store.update(accessTokens, hashToken(token), (current) => ({ ...current, user }));
  return { token, user };
}

async function setRole(user: string, role: 'member' | 'viewer'): Promise<void> {
  await registry.store.update(accounts, 'acme', (account) => withMember(account, user, role, new Date()));
}

async function grantFor(token: string): Promise<string> {
  const query = 'scope=repository:acme/draw:pull,push';
  const { body } = await registry.send(`/token?${query}`, {
    headers: { authorization: registry.basic('acme', token) },
  });
  return `Bearer ${(JSON.parse(body.toString()) as { token: string }).token}`;
}

/** Begins a request whose body never ends. */
function trickle(method: string, path: string, authorization: string) {
  const body = new Readable({ read: () => {} });
  body.push('a part');
  let answer: Answer | undefined;
  const done = registry
    .send(path, { method, headers: { authorization, 'content-type': type }, body })
    .then((answered) => (answer = answered));
  return { done, answer: () => answer };
}

describe.each(['a grant', 'a login'])('with %s', (by) => {
  const authorizationFor = async (token: string) =>
    by === 'a grant' ? await grantFor(token) : registry.basic('acme', token);

  test.each([
    ['a chunk', 'PATCH', async () => String((await registry.as(uploads, { method: 'POST' })).headers.location)],
    ['a last chunk', 'PUT', async () => await uploadWithDigest()],
    ['a whole blob', 'POST', async () => `${uploads}?digest=${sha256('never')}`],
    ['a manifest', 'PUT', async () => '/v2/acme/draw/manifests/v1'],
  ])('%s of a revoked token is ended within a second', async (_name, method, pathOf) => {
    const token = await registry.addToken('acme', ['read', 'push']);
    const [path, authorization] = [await pathOf(), await authorizationFor(token)];
    watch.mockClear();
    const sending = trickle(method, path, authorization);
    await untilWatched();
    await registry.store.update(accessTokens, hashToken(token), (current) => revoke(current, new Date()));
    await clock.advance(1_000);
    await sending.done;
    const answer = sending.answer();
    expect([answer?.status, answer?.code]).toEqual([401, 'DENIED']);
    expect(answer?.headers['www-authenticate']).toContain('Bearer realm=');
  });

  test('a push of a user who becomes a viewer is ended', async () => {
    const { token, user } = await addMember(by.replaceAll(' ', '-'));
    const other = await addMember(`other-${by.replaceAll(' ', '-')}`);
    const location = String((await registry.as(uploads, { method: 'POST' })).headers.location);
    const authorization = await authorizationFor(token);
    watch.mockClear();
    const sending = trickle('PATCH', location, authorization);
    await untilWatched();
    // A change that does not affect the user ends no transfer.
    await setRole(other.user, 'viewer');
    await registry.tokens.publishChange();
    await new Promise(setImmediate);
    expect(sending.answer()).toBeUndefined();
    await setRole(user, 'viewer');
    await registry.tokens.publishChange();
    await sending.done;
    expect(sending.answer()?.status).toBe(401);
  });
});

test('a pull of a revoked token is ended', async () => {
  const bytes = randomBytes(24 * 1024 * 1024);
  const { digest } = await pushBlob(registry, 'acme/draw', bytes);
  const token = await registry.addToken('acme', ['read']);
  const response = await fetch(`http://${registry.host}/v2/acme/draw/blobs/${digest}`, {
    headers: { authorization: registry.basic('acme', token) },
  });
  const chunks = response.body?.[Symbol.asyncIterator]();
  expect((await chunks?.next())?.value?.length).toBeGreaterThan(0);
  await registry.store.update(accessTokens, hashToken(token), (current) => revoke(current, new Date()));
  await registry.tokens.publishChange(hashToken(token));
  await expect(readAll(chunks)).rejects.toThrow('terminated');
  expect(registry.logLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

async function uploadWithDigest(): Promise<string> {
  const { headers } = await registry.as(uploads, { method: 'POST' });
  return `${headers.location}?digest=${sha256('never')}`;
}

/** Waits until the registry has checked the right of a transfer, and watches it. */
async function untilWatched(): Promise<void> {
  await expect.poll(() => watch.mock.calls.length).toBe(1);
  watch.mockClear();
}

async function readAll(chunks: AsyncIterator<unknown> | undefined): Promise<void> {
  for (;;) if ((await chunks?.next())?.done) return;
}
