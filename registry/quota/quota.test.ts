// Takes about 5 s
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { accounts, withMaxStored } from '../../model/account.ts';
import { openTestRegistry, pushBlob, sha256 } from '../../test/kit/registry/registry.ts';
import type { Answer, TestRegistry } from '../../test/kit/registry/registry.ts';
import { manifests, uploadSessions } from '../content/documents.ts';

const mediaType = 'application/vnd.oci.image.index.v1+json';
const uploads = '/v2/acme/draw/blobs/uploads/';

async function openLimited(limits: { accountBytes?: number; blobBytes?: number; openUploads?: number }) {
  const clock = new ManualClock(new Date());
  return Object.assign(await openTestRegistry({ clock, limits }), { clock });
}

const push = async (registry: TestRegistry, bytes: Uint8Array, repository = 'acme/draw') =>
  await registry.as(`/v2/${repository}/blobs/uploads/?digest=${sha256(bytes)}`, { method: 'POST', body: bytes });

const begin = async (registry: TestRegistry, path = uploads) => {
  const answer = await registry.as(path, { method: 'POST' });
  return { ...answer, location: String(answer.headers.location) };
};

const errorIn = ({ status, code, body }: Answer) => [status, code, body.toString()];
const quotaExceeded = (used: string) => [
  403,
  'DENIED',
  expect.stringContaining(`delete images or ask an operator for a higher quota: acme has ${used} of 1000 bytes`),
];

/** The sessions and bytes of all uploads: a rejected upload must leave none. */
const leftovers = async ({ store, blobs }: TestRegistry) => {
  const sessions = await store.find(uploadSessions, { index: 'byStart' });
  const uploads: string[] = [];
  for await (const uploadId of blobs.listUploads()) uploads.push(uploadId);
  return [...sessions, ...uploads];
};

/** A body without a length and without an end: the client gets an error or is disconnected. */
const endless = () => Readable.from(repeat(), { objectMode: false });
async function* repeat() {
  for (;;) yield randomBytes(16_384);
}

const errorCount = async ({ metrics }: TestRegistry, reason: string) =>
  Number(new RegExp(`errors_total{reason="${reason}"} (\\d+)`).exec(await metrics.metrics())?.[1] ?? 0);

test('all repositories of an account share its limit', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  expect((await push(registry, randomBytes(600))).status).toBe(201);
  const bytes = randomBytes(400);
  expect((await push(registry, bytes, 'acme/other')).status).toBe(201);
  expect(errorIn(await push(registry, randomBytes(1), 'acme/third'))).toEqual(quotaExceeded('1000 bytes'));
  expect(errorIn(await begin(registry))).toEqual(quotaExceeded('1000 bytes'));
  expect(await leftovers(registry)).toEqual([]);
  const otherAccount = registry.basic('other', await registry.addToken('other', ['push']));
  const theirs = { method: 'POST', headers: { authorization: otherAccount }, body: bytes };
  expect((await registry.send(`/v2/other/x/blobs/uploads/?digest=${sha256(bytes)}`, theirs)).status).toBe(201);
  expect(await errorCount(registry, 'quota-exceeded')).toBe(2);
});

test('the same bytes count once, pushed again or mounted', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  const bytes = randomBytes(400);
  for (const repository of ['acme/a', 'acme/b', 'acme/a']) await pushBlob(registry, repository, bytes);
  for (const target of ['acme/c', 'acme/d']) {
    const mount = `/v2/${target}/blobs/uploads/?mount=${sha256(bytes)}&from=acme/a`;
    expect((await registry.as(mount, { method: 'POST' })).status).toBe(201);
  }
  expect((await push(registry, randomBytes(601))).status).toBe(403);
  expect((await push(registry, randomBytes(600))).status).toBe(201);
  // A mount of a blob that the account has adds nothing, so it is allowed even now.
  const mount = `/v2/acme/e/blobs/uploads/?mount=${sha256(bytes)}&from=acme/a`;
  expect((await registry.as(mount, { method: 'POST' })).status).toBe(201);
  await registry.clock.advance(60_000);
  expect(errorIn(await begin(registry))).toEqual(quotaExceeded('1000 bytes'));
});

test('a blob that is mounted from another account counts', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  const bytes = randomBytes(700);
  const digest = sha256(bytes);
  const otherAccount = registry.basic('other', await registry.addToken('other', ['read', 'push']));
  const headers = { authorization: otherAccount };
  await registry.send(`/v2/other/x/blobs/uploads/?digest=${digest}`, { method: 'POST', headers, body: bytes });
  await pushBlob(registry, 'acme/a', randomBytes(400));
  const access = [
    { type: 'repository' as const, name: 'acme/a', actions: ['push' as const] },
    { type: 'repository' as const, name: 'other/x', actions: ['pull' as const] },
  ];
  const token = await registry.grants.issue({ subject: 'acme', access }, 60, registry.clock.now());
  const mount = `/v2/acme/a/blobs/uploads/?mount=${digest}&from=other/x`;
  const refused = await registry.send(mount, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  expect(errorIn(refused)).toEqual(quotaExceeded('400 bytes'));
});

test('an announced length is rejected before the body; an unannounced one as soon as the body exceeds the limit', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  const announced = await begin(registry);
  const patch = await registry.as(announced.location, { method: 'PATCH', body: randomBytes(1001) });
  expect(errorIn(patch)).toEqual(quotaExceeded('0 bytes'));
  expect((await registry.as(announced.location)).code).toBe('BLOB_UPLOAD_UNKNOWN');

  for (const method of ['PATCH', 'PUT']) {
    const streamed = await begin(registry);
    const path = method === 'PUT' ? `${streamed.location}?digest=${sha256('')}` : streamed.location;
    const before = await errorCount(registry, 'quota-exceeded');
    await registry.as(path, { method, body: endless() }).catch(() => {});
    expect(await errorCount(registry, 'quota-exceeded')).toBe(before + 1);
    const finite = await begin(registry);
    const body = Readable.from([randomBytes(900), randomBytes(200)], { objectMode: false });
    expect((await registry.as(finite.location, { method: 'PATCH', body })).code).toBe('DENIED');
  }
  expect(await leftovers(registry)).toEqual([]);
  expect((await push(registry, randomBytes(1000))).status).toBe(201);
});

test('the bytes of open uploads count until they end', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  const first = await begin(registry);
  expect((await registry.as(first.location, { method: 'PATCH', body: randomBytes(600) })).status).toBe(202);
  const second = await begin(registry, '/v2/acme/other/blobs/uploads/');
  const patch = async () => await registry.as(second.location, { method: 'PATCH', body: randomBytes(500) });
  expect(errorIn(await patch())).toEqual(quotaExceeded('600 bytes'));
  // In another process, usage is measured, with the same result.
  await registry.restart();
  expect(errorIn(await push(registry, randomBytes(500)))).toEqual(quotaExceeded('600 bytes'));
  expect((await registry.as(first.location, { method: 'DELETE' })).status).toBe(204);
  expect((await push(registry, randomBytes(1000))).status).toBe(201);
});

test('concurrent uploads share the remaining bytes', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  await push(registry, randomBytes(100));
  const gate = Promise.withResolvers<void>();
  const slow = async function* () {
    yield randomBytes(500);
    await gate.promise;
    yield randomBytes(300);
  };
  const one = await begin(registry);
  const sending = registry.as(one.location, { method: 'PATCH', body: Readable.from(slow()) });
  await expect
    .poll(async () => (await registry.blobs.statUpload(one.location.split('/').at(-1) ?? ''))?.sizeBytes)
    .toBe(500);
  // 600 bytes are used, whether they are counted or measured again.
  for (const waitMs of [0, 60_000]) {
    await registry.clock.advance(waitMs);
    expect((await push(registry, randomBytes(401))).code).toBe('DENIED');
  }
  expect((await push(registry, randomBytes(300))).status).toBe(201);
  gate.resolve();
  expect((await sending).code).toBe('DENIED');
  await registry.clock.advance(3_000);
  expect((await push(registry, randomBytes(600))).status).toBe(201);
});

test('a stalled push releases its bytes when it is ended', async () => {
  await using registry = await openLimited({ accountBytes: 100_000 });
  const stalled = httpRequest({
    port: registry.port,
    host: '127.0.0.1',
    method: 'POST',
    path: `${uploads}?digest=${sha256('never whole')}`,
    headers: { authorization: registry.basic('acme', registry.token), 'content-length': 90_000 },
    agent: false,
  });
  stalled.on('error', () => {});
  const { promise: answered, resolve } = Promise.withResolvers<number | undefined>();
  stalled.on('response', ({ statusCode }) => resolve(statusCode));
  stalled.write(randomBytes(60_000));
  let status: number | undefined;
  void answered.then((code) => (status = code));
  const aMinuteLater = async () => {
    await registry.clock.advance(60_000);
    return status;
  };
  await expect.poll(aMinuteLater).toBe(408);
  expect(await leftovers(registry)).toEqual([]);
  expect((await push(registry, randomBytes(50_000))).status).toBe(201);
  stalled.destroy();
});

test('an account may have its own limit, smaller, larger or none, which takes effect within seconds', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  const { store, clock } = registry;
  const allow = async (maxStoredBytes: number | undefined) => {
    await store.update(accounts, 'acme', (account) => withMaxStored(account, maxStoredBytes));
    await clock.advance(3_000);
  };
  const begun = await begin(registry);
  await allow(500);
  expect(errorIn(await push(registry, randomBytes(501)))).toEqual([
    403,
    'DENIED',
    expect.stringContaining('acme has 0 bytes of 500 bytes'),
  ]);
  expect((await registry.as(begun.location, { method: 'PATCH', body: randomBytes(501) })).code).toBe('DENIED');
  await allow(2000);
  expect((await push(registry, randomBytes(1500))).status).toBe(201);
  await allow(undefined);
  expect(errorIn(await begin(registry))).toEqual(quotaExceeded('1.5 KiB'));
  await allow(0);
  expect((await push(registry, randomBytes(5000))).status).toBe(201);
  const otherAccount = registry.basic('other', await registry.addToken('other', ['push']));
  const theirs = { method: 'POST', headers: { authorization: otherAccount }, body: randomBytes(1001) };
  expect((await registry.send(`/v2/other/x/blobs/uploads/?digest=${sha256('')}`, theirs)).code).toBe('DENIED');
});

test('an account with its own limit is limited even if the others are not', async () => {
  await using registry = await openLimited({});
  expect((await push(registry, randomBytes(600))).status).toBe(201);
  await registry.store.update(accounts, 'acme', (account) => withMaxStored(account, 1000));
  await registry.clock.advance(3_000);
  expect(errorIn(await push(registry, randomBytes(401)))).toEqual(quotaExceeded('600 bytes'));
  expect((await push(registry, randomBytes(400))).status).toBe(201);
});

test('manifests count', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  const put = async (note: string) => {
    const body = JSON.stringify({ schemaVersion: 2, mediaType, manifests: [], annotations: { note } });
    const headers = { 'content-type': mediaType };
    return await registry.as('/v2/acme/draw/manifests/v1', { method: 'PUT', headers, body });
  };
  expect((await put('x'.repeat(700))).status).toBe(201);
  expect((await put('y'.repeat(700))).code).toBe('DENIED');
  expect((await put('x'.repeat(700))).status).toBe(201);
  const [stored, ...more] = await registry.store.find(manifests, { index: 'byRepository' });
  expect(more).toEqual([]);
  await registry.clock.advance(60_000);
  expect(errorIn(await put('y'.repeat(700)))).toEqual(quotaExceeded(`${stored?.bytes.byteLength} bytes`));
});

test('a client can push soon after it has deleted content', async () => {
  await using registry = await openLimited({ accountBytes: 1000 });
  const { digest } = await pushBlob(registry, 'acme/draw', randomBytes(1000));
  expect((await push(registry, randomBytes(500))).code).toBe('DENIED');
  await registry.as(`/v2/acme/draw/blobs/${digest}`, { method: 'DELETE' });
  await registry.clock.advance(3_000);
  expect((await push(registry, randomBytes(500))).status).toBe(201);
});

test('a blob has a maximum size, announced or not, in one request or many', async () => {
  await using registry = await openLimited({ blobBytes: 1000 });
  const tooLarge = [413, 'DENIED', expect.stringContaining('make smaller layers: at most 1000 bytes')];
  expect(errorIn(await push(registry, randomBytes(1001)))).toEqual(tooLarge);
  const chunked = await begin(registry);
  expect((await registry.as(chunked.location, { method: 'PATCH', body: randomBytes(600) })).status).toBe(202);
  expect(errorIn(await registry.as(chunked.location, { method: 'PATCH', body: randomBytes(401) }))).toEqual(tooLarge);
  const streamed = await begin(registry);
  await registry.as(streamed.location, { method: 'PATCH', body: endless() }).catch(() => {});
  expect(await errorCount(registry, 'blob-too-large')).toBe(3);
  expect(await leftovers(registry)).toEqual([]);
  expect((await push(registry, randomBytes(1000))).status).toBe(201);
});

test('the number of open uploads per account is limited', async () => {
  await using registry = await openLimited({ openUploads: 3 });
  const open = [await begin(registry), await begin(registry, '/v2/acme/b/blobs/uploads/'), await begin(registry)];
  expect(open.map(({ status }) => status)).toEqual([202, 202, 202]);
  const refused = await begin(registry);
  expect([refused.status, refused.code, refused.headers['retry-after']]).toEqual([429, 'TOOMANYREQUESTS', '30']);
  await registry.restart();
  expect((await begin(registry)).status).toBe(429);
  // Cancelled and finished uploads are released, and a push in one request reserves none.
  expect((await push(registry, randomBytes(10))).status).toBe(201);
  await registry.as(open[0]?.location ?? '', { method: 'DELETE' });
  expect((await begin(registry)).status).toBe(202);
  await registry.as(`${open[1]?.location}?digest=${sha256('bytes')}`, { method: 'PUT', body: 'bytes' });
  expect([(await begin(registry)).status, (await begin(registry)).status]).toEqual([202, 429]);
  const otherAccount = registry.basic('other', await registry.addToken('other', ['push']));
  const theirs = await registry.send('/v2/other/x/blobs/uploads/', {
    method: 'POST',
    headers: { authorization: otherAccount },
  });
  expect(theirs.status).toBe(202);
});
