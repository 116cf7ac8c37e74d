import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { HashThreads } from '../../core/hash/hash-threads.ts';
import { openTestRegistry, pushBlob, sha256, sha512 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';

let registry: TestRegistry;
beforeAll(async () => {
  registry = await openTestRegistry();
});
afterAll(async () => await registry[Symbol.asyncDispose]());

const uploads = '/v2/acme/draw/blobs/uploads/';

async function begin(query = ''): Promise<string> {
  const answer = await registry.as(uploads + query, { method: 'POST' });
  expect(answer.status).toBe(202);
  expect(answer.headers.range).toBe('0-0');
  return String(answer.headers.location);
}

test('receives a blob in a chunked PATCH without a length and an empty PUT, as docker sends it', async () => {
  const bytes = randomBytes(300_000);
  const location = await begin();
  expect(location).toMatch(/^\/v2\/acme\/draw\/blobs\/uploads\/[a-f0-9-]{36}$/);
  const patched = await registry.as(location, { method: 'PATCH', body: Readable.from([bytes]) });
  expect([patched.status, patched.headers.range, patched.headers.location]).toEqual([202, '0-299999', location]);
  expect(patched.headers['docker-upload-uuid']).toBe(location.split('/').at(-1));
  const put = await registry.as(`${location}?digest=${sha256(bytes)}`, { method: 'PUT' });
  expect([put.status, put.headers.location]).toEqual([201, `/v2/acme/draw/blobs/${sha256(bytes)}`]);

  const head = await registry.as(String(put.headers.location), { method: 'HEAD' });
  expect(head.status).toBe(200);
  expect(head.headers).toMatchObject({ 'content-length': '300000', 'docker-content-digest': sha256(bytes) });
  const pulled = await registry.as(String(put.headers.location));
  expect(pulled.headers['content-encoding']).toBeUndefined();
  expect(pulled.body.equals(bytes)).toBe(true);
  expect((await registry.as(location)).code).toBe('BLOB_UPLOAD_UNKNOWN');
});

test('receives a blob in one POST, in one PUT, and an empty one', async () => {
  await pushBlob(registry, 'acme/draw', 'in one post');
  const location = await begin();
  const put = await registry.as(`${location}?digest=${sha256('in one put')}`, { method: 'PUT', body: 'in one put' });
  expect(put.status).toBe(201);
  const empty = await pushBlob(registry, 'acme/draw', '');
  const pulled = await registry.as(`/v2/acme/draw/blobs/${empty.digest}`);
  expect([pulled.status, pulled.headers['content-length'], pulled.body.length]).toEqual([200, '0', 0]);
});

test('a chunk out of order is rejected with 416, and the session continues', async () => {
  const location = await begin();
  const chunk = (range: string, body: string) =>
    registry.as(location, { method: 'PATCH', headers: { 'content-range': range }, body });
  expect((await chunk('1-3', 'abc')).status).toBe(416);
  expect((await chunk('0-2', 'abc')).headers.range).toBe('0-2');
  const outOfOrder = await chunk('6-8', 'ghi');
  expect([outOfOrder.status, outOfOrder.headers.range, outOfOrder.headers.location]).toEqual([416, '0-2', location]);
  expect((await chunk('0-2', 'abc')).status).toBe(416);
  expect((await chunk('3-9', 'def')).code).toBe('SIZE_INVALID');
  expect((await chunk('bytes 3-5/9', 'def')).code).toBe('BLOB_UPLOAD_INVALID');
  const status = await registry.as(location);
  expect([status.status, status.headers.range]).toEqual([204, '0-2']);
  const wrongPut = { method: 'PUT', headers: { 'content-range': '9-11' }, body: 'def' };
  expect((await registry.as(`${location}?digest=${sha256('abcdef')}`, wrongPut)).status).toBe(416);
  const rightPut = { method: 'PUT', headers: { 'content-range': '3-5' }, body: 'def' };
  expect((await registry.as(`${location}?digest=${sha256('abcdef')}`, rightPut)).status).toBe(201);
});

test('supports sha512, announced or not', async () => {
  const digest = sha512('long hash');
  const announced = await begin('?digest-algorithm=sha512');
  await registry.as(announced, { method: 'PATCH', body: 'long hash' });
  const put = await registry.as(`${announced}?digest=${digest}`, { method: 'PUT' });
  expect([put.status, put.headers['docker-content-digest']]).toEqual([201, digest]);
  const unannounced = await begin();
  await registry.as(unannounced, { method: 'PATCH', body: 'long hash' });
  expect((await registry.as(`${unannounced}?digest=${digest}`, { method: 'PUT' })).status).toBe(201);
  const post = await registry.as(`${uploads}?digest=${digest}`, { method: 'POST', body: 'long hash' });
  expect(post.status).toBe(201);
  expect((await registry.as(`${uploads}?digest-algorithm=md5`, { method: 'POST' })).code).toBe('DIGEST_INVALID');
});

test('content with another digest is rejected on every path, and leaves nothing', async () => {
  const digest = sha256('not this');
  const location = await begin();
  const put = await registry.as(`${location}?digest=${digest}`, { method: 'PUT', body: 'that' });
  expect([put.status, put.code]).toEqual([400, 'DIGEST_INVALID']);
  const post = await registry.as(`${uploads}?digest=${digest}`, { method: 'POST', body: 'that' });
  expect([post.status, post.code]).toEqual([400, 'DIGEST_INVALID']);
  expect((await registry.as(`/v2/acme/draw/blobs/${digest}`)).code).toBe('BLOB_UNKNOWN');
  expect((await registry.as(location)).status).toBe(404);
});

test('an upload continues after a restart', async () => {
  const location = await begin();
  await registry.as(location, { method: 'PATCH', body: 'before ' });
  await registry.restart();
  expect((await registry.as(location)).headers.range).toBe('0-6');
  await registry.as(location, { method: 'PATCH', body: 'after' });
  const digest = sha256('before after');
  expect((await registry.as(`${location}?digest=${digest}`, { method: 'PUT' })).status).toBe(201);
});

test('bytes from before a disconnect are kept, and the upload can continue', async () => {
  const location = await begin();
  const bytes = randomBytes(200_000);
  const socket = connect(registry.port, '127.0.0.1');
  socket.write(`PATCH ${location} HTTP/1.1\r\nhost: ${registry.host}\r\ncontent-length: 200000\r\n`);
  socket.write(`authorization: ${registry.basic('acme', registry.token)}\r\n\r\n`);
  socket.write(bytes.subarray(0, 100_000));
  await expect
    .poll(async () => (await registry.blobs.statUpload(location.split('/').at(-1) ?? ''))?.sizeBytes)
    .toBe(100_000);
  socket.destroy();
  await once(socket, 'close');
  const rest = { method: 'PATCH', headers: { 'content-range': '100000-199999' }, body: bytes.subarray(100_000) };
  await expect.poll(async () => (await registry.as(location, rest)).status).toBe(202);
  expect((await registry.as(`${location}?digest=${sha256(bytes)}`, { method: 'PUT' })).status).toBe(201);
});

test('two requests cannot write to one upload at the same time, or finish it twice', async () => {
  const location = await begin();
  const slow = new Readable({ read: () => {} });
  const first = registry.as(location, { method: 'PATCH', body: slow });
  slow.push('slow');
  await expect.poll(async () => (await registry.as(location, { method: 'PATCH', body: 'x' })).status).toBe(409);
  const digest = sha256('slow');
  expect((await registry.as(`${location}?digest=${digest}`, { method: 'PUT' })).status).toBe(409);
  slow.push(null);
  expect((await first).status).toBe(202);
  const puts = await Promise.all([1, 2, 3].map(() => registry.as(`${location}?digest=${digest}`, { method: 'PUT' })));
  expect(puts.filter(({ status }) => status === 201)).toHaveLength(1);
  expect((await registry.as(location, { method: 'PATCH', body: 'x' })).status).toBe(404);
});

test('an upload that is cancelled or idle for ten minutes uses no hash thread', async () => {
  const clock = new ManualClock(new Date());
  await using hashing = new HashThreads(clock);
  await using clocked = await openTestRegistry({ clock, hashing });
  const bytes = randomBytes(300_000);
  const sendPart = async () => {
    const begun = await clocked.as(uploads, { method: 'POST' });
    const location = String(begun.headers.location);
    expect((await clocked.as(location, { method: 'PATCH', body: Readable.from([bytes]) })).status).toBe(202);
    expect(hashing.count).toBe(1);
    return location;
  };
  const cancelled = await sendPart();
  expect((await clocked.as(cancelled, { method: 'DELETE' })).status).toBe(204);
  await clock.advance(90_000);
  expect(hashing.count).toBe(0);
  const idle = await sendPart();
  await clock.advance(540_000);
  expect(hashing.count).toBe(1);
  await clock.advance(180_000);
  expect(hashing.count).toBe(0);
  expect((await clocked.as(`${idle}?digest=${sha256(bytes)}`, { method: 'PUT' })).status).toBe(201);
});

test('a cancelled session no longer exists', async () => {
  const location = await begin();
  expect((await registry.as(location, { method: 'DELETE' })).status).toBe(204);
  expect((await registry.as(location, { method: 'DELETE' })).code).toBe('BLOB_UPLOAD_UNKNOWN');
});

test('the session of another repository or account is unknown', async () => {
  const location = await begin();
  const elsewhere = location.replace('acme/draw', 'acme/paint');
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    expect((await registry.as(elsewhere, { method })).code).toBeOneOf(['BLOB_UPLOAD_UNKNOWN', undefined]);
  }
  expect((await registry.as(`${elsewhere}?digest=${sha256('')}`, { method: 'PUT' })).status).toBe(404);
  const grant = await registry.grants.issue(
    { subject: 'other', access: [{ type: 'repository', name: 'acme/draw', actions: ['push'] }] },
    60,
    new Date(),
  );
  expect((await registry.send(location, { headers: { authorization: `Bearer ${grant}` } })).status).toBe(404);
  expect((await registry.as(location)).status).toBe(204);
});

test('answers ranges', async () => {
  const { digest } = await pushBlob(registry, 'acme/draw', '0123456789');
  const get = (range: string, headers = {}) =>
    registry.as(`/v2/acme/draw/blobs/${digest}`, { headers: { range, ...headers } });
  const part = await get('bytes=2-4');
  expect([part.status, part.body.toString(), part.headers['content-range']]).toEqual([206, '234', 'bytes 2-4/10']);
  expect(part.headers['content-length']).toBe('3');
  expect((await get('bytes=7-')).body.toString()).toBe('789');
  expect((await get('bytes=-3')).body.toString()).toBe('789');
  expect((await get('bytes=-300')).headers['content-range']).toBe('bytes 0-9/10');
  expect((await get('bytes=5-99999999999999999999999')).body.toString()).toBe('56789');
  for (const range of ['bytes=10-', 'bytes=5-0', 'bytes=-0', 'bytes=99999999999999999999999-']) {
    const refused = await get(range);
    expect([range, refused.status, refused.headers['content-range']]).toEqual([range, 416, 'bytes */10']);
  }
  for (const range of [`bytes=${Array(1000).fill('0-0').join(',')}`, 'lines=1-2', 'bytes=a-b', 'bytes=-']) {
    const whole = await get(range);
    expect([whole.status, whole.body.toString()]).toEqual([200, '0123456789']);
  }
  expect((await get('bytes=2-4', { 'if-range': '"sha256:other"' })).status).toBe(200);
  expect((await get('', { 'if-none-match': `"${digest}"` })).status).toBe(304);
});

test('a disconnect during a download closes the file', async () => {
  const { digest } = await pushBlob(registry, 'acme/draw', randomBytes(16 * 1024 * 1024));
  const socket = connect(registry.port, '127.0.0.1');
  socket.write(`GET /v2/acme/draw/blobs/${digest} HTTP/1.1\r\nhost: ${registry.host}\r\n`);
  socket.write(`authorization: ${registry.basic('acme', registry.token)}\r\n\r\n`);
  await once(socket, 'data');
  socket.destroy();
  await expect
    .poll(() => registry.logLines.some((line) => line.includes(digest) && line.includes('"code":"gone"')))
    .toBe(true);
  expect(registry.logLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

test('a mount requires the right to read the source; without it the source counts as absent', async () => {
  const { digest } = await pushBlob(registry, 'acme/draw', 'to mount');
  const mount = (repository: string, query: string, headers = {}) =>
    registry.as(`/v2/${repository}/blobs/uploads/?${query}`, { method: 'POST', headers });
  const mounted = await mount('acme/paint', `mount=${digest}&from=acme/draw`);
  expect([mounted.status, mounted.headers.location]).toEqual([201, `/v2/acme/paint/blobs/${digest}`]);
  expect((await registry.as(`/v2/acme/paint/blobs/${digest}`)).body.toString()).toBe('to mount');
  expect((await mount('acme/sketch', `mount=${digest}`)).status).toBe(201);
  expect((await mount('acme/paint', `mount=${sha256('absent')}&from=acme/draw`)).status).toBe(202);
  expect((await mount('acme/paint', `mount=${digest}&from=../etc`)).status).toBe(202);
  expect((await mount('acme/paint', `mount=sha256:short&from=acme/draw`)).code).toBe('DIGEST_INVALID');
  expect((await mount('acme/paint', `mount=${digest}&mount=${digest}`)).status).toBe(400);
  const other = registry.basic('other', await registry.addToken('other', ['read', 'push']));
  const stolen = await mount('other/thing', `mount=${digest}&from=acme/draw`, { authorization: other });
  const guessed = await mount('other/thing', `mount=${digest}`, { authorization: other });
  expect([stolen.status, guessed.status]).toEqual([202, 202]);
});

test('a blob is visible only in repositories to which it was pushed, and deleting it in one leaves the others', async () => {
  const { digest } = await pushBlob(registry, 'acme/draw', 'shared');
  expect((await registry.as(`/v2/acme/paint/blobs/${digest}`)).code).toBe('BLOB_UNKNOWN');
  await pushBlob(registry, 'acme/paint', 'shared');
  expect((await registry.as(`/v2/acme/draw/blobs/${digest}`, { method: 'DELETE' })).status).toBe(202);
  expect((await registry.as(`/v2/acme/draw/blobs/${digest}`, { method: 'HEAD' })).status).toBe(404);
  expect((await registry.as(`/v2/acme/draw/blobs/${digest}`, { method: 'DELETE' })).status).toBe(404);
  expect((await registry.as(`/v2/acme/paint/blobs/${digest}`)).body.toString()).toBe('shared');
});

test('a push restores a blob whose bytes are missing', async () => {
  const { digest } = await pushBlob(registry, 'acme/draw', 'lost and found');
  await registry.blobs.delete(digest);
  expect((await registry.as(`/v2/acme/draw/blobs/${digest}`, { method: 'HEAD' })).status).toBe(404);
  await pushBlob(registry, 'acme/draw', 'lost and found');
  expect((await registry.as(`/v2/acme/draw/blobs/${digest}`)).body.toString()).toBe('lost and found');
});
