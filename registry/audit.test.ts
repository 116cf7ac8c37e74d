/** The audit records of pushes and deletions. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessTokens, hashToken, publicTokenId } from '../model/access-token.ts';
import { accounts, withMember } from '../model/account.ts';
import { auditRecords } from '../model/audit.ts';
import { newUser, users, withAccount } from '../model/user.ts';
import { tags } from './content/documents.ts';
import { openTestRegistry, pushBlob, pushImage, putManifest, sha256 } from '../test/kit/registry/registry.ts';
import type { TestRegistry } from '../test/kit/registry/registry.ts';

const user = 'ada@example.com';
let isAuditDown = false;
let registry: TestRegistry;
beforeAll(async () => {
  registry = await openTestRegistry({
    behindLoadBalancer: true,
    beforeWrite: (_method, collection) => {
      if (isAuditDown && collection === auditRecords.name) throw new Error('down');
    },
  });
  const now = new Date();
  await registry.store.insert(users, withAccount(newUser(user, { isAdmin: false }, now), 'acme'));
  await registry.store.update(accounts, 'acme', (account) => withMember(account, user, 'member', now));
  await registry.store.update(accessTokens, hashToken(registry.token), (token) => ({ ...token, user }));
});
afterAll(async () => await registry[Symbol.asyncDispose]());

async function recordsOf(service: string) {
  const all = await registry.store.find(auditRecords, { index: 'byAccount', equals: { account: 'acme' } });
  return all.filter(({ details }) => details['service'] === service);
}

const target = { repository: 'acme/draw', reference: 'v1' };

test('each push of a manifest, and each deletion, is recorded once, with its user, token, address and status', async () => {
  const authorization = registry.basic('acme', registry.token);
  const from = { authorization, 'x-forwarded-for': '192.0.2.7' };
  const { digest } = await pushImage(registry, target);
  const layer = await pushBlob(registry, 'acme/draw', 'a layer');
  const remove = async (path: string) => await registry.send(path, { method: 'DELETE', headers: from });
  const manifests = '/v2/acme/draw/manifests';
  const answer = await remove(`${manifests}/v1`);
  expect([answer.status, (await remove(`${manifests}/${digest}`)).status]).toEqual([202, 202]);
  const grant = await registry.grants.issue(
    {
      subject: 'acme',
      token: hashToken(registry.token),
      access: [{ type: 'repository', name: 'acme/draw', actions: ['delete'] }],
    },
    60,
    new Date(),
  );
  const byGrant = { method: 'DELETE', headers: { ...from, authorization: `Bearer ${grant}` } };
  expect((await registry.send(`/v2/acme/draw/blobs/${layer.digest}`, byGrant)).status).toBe(202);
  // Deleting absent content changes nothing.
  for (const path of [`${manifests}/v1`, `${manifests}/${digest}`, `/v2/acme/draw/blobs/${layer.digest}`]) {
    expect((await (path.includes('blobs') ? registry.send(path, byGrant) : remove(path))).status).toBe(404);
  }
  const records = await recordsOf('draw');
  const by = { account: 'acme', user, token: publicTokenId({ id: hashToken(registry.token) }) };
  const acme = { account: 'acme', service: 'draw' };
  expect(records).toEqual([
    expect.objectContaining({ ...by, action: 'pushManifest', details: { ...acme, digest, tags: ['v1'] }, status: 201 }),
    expect.objectContaining({ ...by, action: 'deleteTag', details: { ...acme, tag: 'v1' }, status: 202 }),
    expect.objectContaining({ ...by, action: 'deleteManifest', details: { ...acme, digest }, status: 202 }),
    expect.objectContaining({ ...by, action: 'deleteBlob', details: { ...acme, digest: layer.digest }, status: 202 }),
  ]);
  expect(records.map(({ address }) => address)).toEqual(['127.0.0.1', '192.0.2.7', '192.0.2.7', '192.0.2.7']);
  expect(records[1]?.request).toBe(answer.headers['x-request-id']);
});

test('a rejected push is not recorded', async () => {
  const absent = { mediaType: 'application/vnd.oci.image.config.v1+json', digest: sha256('absent'), size: 6 };
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = { schemaVersion: 2, mediaType, config: absent, layers: [] };
  const rejected = await putManifest(registry, { repository: 'acme/rejected', reference: 'v1' }, manifest);
  expect([rejected.status, await recordsOf('rejected')]).toEqual([404, []]);
});

test('a push that cannot be recorded sets no tag, and nothing is deleted without a record', async () => {
  await pushImage(registry, { repository: 'acme/down', reference: 'before' });
  isAuditDown = true;
  const statuses = [
    (await pushImage(registry, { repository: 'acme/down', reference: 'v1' })).status,
    (await registry.as('/v2/acme/down/manifests/before', { method: 'DELETE' })).status,
  ];
  isAuditDown = false;
  expect(statuses).toEqual([500, 500]);
  expect(JSON.parse((await registry.as('/v2/acme/down/tags/list')).body.toString()).tags).toEqual(['before']);
  expect((await pushImage(registry, { repository: 'acme/down', reference: 'v1' })).status).toBe(201);
  expect((await recordsOf('down')).map(({ details }) => details['tags'])).toEqual([['before'], ['v1']]);
});

test('the record of a push that fails later gets the status of the error', async () => {
  let isTagDown = false;
  await using failing = await openTestRegistry({
    beforeWrite: (_method, collection) => {
      if (collection === tags.name && isTagDown) throw new Error('down');
    },
  });
  isTagDown = true;
  expect((await pushImage(failing, target)).status).toBe(500);
  const [record, ...others] = await failing.store.find(auditRecords, { index: 'byAccount' });
  expect([record?.status, others]).toEqual([500, []]);
});
