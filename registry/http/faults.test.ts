// Takes about 4 s
/** Failures of ports, crashes in the middle of a request, and clients that do not send HTTP. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { BlobsError } from '../../core/blobs/blobs.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { StoreError } from '../../core/store/store.ts';
import { findImage } from '../../model/image.ts';
import { services } from '../../model/service.ts';
import { openTestRegistry, pushImage, sha256 } from '../../test/kit/registry/registry.ts';
import { contentId, manifests, tagId, tags, uploadSessions } from '../content/documents.ts';

test('repeating a push repairs a crash at any of its writes', async () => {
  let left = Infinity;
  let written: string[] = [];
  await using registry = await openTestRegistry({
    beforeWrite: (method) => {
      if (left === 0) throw new Error('The process ends here');
      left -= 1;
      written.push(method);
    },
  });
  const push = async (repository: string) => await pushImage(registry, { repository, reference: 'v1' });
  await push('acme/whole');
  const steps = written.length;
  expect(steps).toBeGreaterThan(12);
  for (let step = 0; step < steps; step += 1) {
    const repository = `acme/cut${step}`;
    left = step;
    const outcome = await push(repository).then(
      ({ status }) => status,
      () => 500,
    );
    expect([step, outcome]).toEqual([step, 500]);
    left = Infinity;
    await registry.restart();
    const { status, digest } = await push(repository);
    expect([step, status]).toEqual([step, 201]);
    const pulled = await registry.as(`/v2/${repository}/manifests/v1`);
    expect(pulled.headers['docker-content-digest']).toBe(digest);
    expect((await findImage(registry.store, repository, 'v1'))?.digest).toBe(digest);
    expect((await registry.store.get(services, repository))?.lastImageDigest).toBe(digest);
  }
});

test('repeating a deletion repairs a crash at any of its writes', async () => {
  let left = Infinity;
  await using registry = await openTestRegistry({
    beforeWrite: () => {
      if (left === 0) throw new Error('The process ends here');
      left -= 1;
    },
  });
  for (let step = 0; step < 6; step += 1) {
    const { digest } = await pushImage(registry, { repository: 'acme/draw', reference: 'v1' });
    await pushImage(registry, { repository: 'acme/draw', reference: 'v2' });
    left = step;
    const path = `/v2/acme/draw/manifests/${digest}`;
    expect((await registry.as(path, { method: 'DELETE' })).status).toBe(500);
    left = Infinity;
    expect([step, (await registry.as(path, { method: 'DELETE' })).status]).toEqual([step, 202]);
    expect((await registry.as('/v2/acme/draw/tags/list')).body.toString()).toContain('"tags":[]');
    expect(await findImage(registry.store, 'acme/draw', 'v1')).toBeUndefined();
    expect((await registry.as('/v2/acme/draw/manifests/v2')).status).toBe(404);
  }
});

test('a deletion succeeds although the collector deletes the manifest after its last tag was deleted', async () => {
  const deletion = { isBegun: false, collect: async () => {} };
  await using registry = await openTestRegistry({
    beforeCall: async (method) => {
      if (!deletion.isBegun || method !== 'delete') return;
      const tag = await registry.store.get(tags, tagId('acme/draw', 'v1'));
      if (tag) return;
      deletion.isBegun = false;
      await deletion.collect();
    },
  });
  const { digest } = await pushImage(registry, { repository: 'acme/draw', reference: 'v1' });
  let isCollected = false;
  deletion.collect = async () => {
    isCollected = await registry.store.delete(manifests, contentId('acme/draw', digest));
  };
  deletion.isBegun = true;
  expect((await registry.as(`/v2/acme/draw/manifests/${digest}`, { method: 'DELETE' })).status).toBe(202);
  expect(isCollected).toBe(true);
});

test.each([
  new BlobsError('no-space', 'No space left'),
  new StoreError('unavailable', 'No space left', { isFull: true }),
])(
  'a push that runs out of space at any of its writes is rejected, and leaves no bytes of an upload: %s',
  async (problem) => {
    let left = Infinity;
    let writes = 0;
    await using registry = await openTestRegistry({
      limits: { openUploads: 1 },
      beforeWrite: () => {
        writes += 1;
        left -= 1;
        if (left === -1) throw problem;
      },
    });
    const push = async (layer: string): Promise<number> => {
      const begun = await registry.as('/v2/acme/draw/blobs/uploads/', { method: 'POST' });
      if (begun.status !== 202) return begun.status;
      const session = String(begun.headers.location);
      const grown = await registry.as(session, { method: 'PATCH', body: layer });
      if (grown.status !== 202) return grown.status;
      return (await registry.as(`${session}?digest=${sha256(layer)}`, { method: 'PUT' })).status;
    };
    expect(await push('whole')).toBe(201);
    const steps = writes;
    expect(steps).toBeGreaterThan(4);
    // The last write deletes the session of a complete blob.
    for (let step = 0; step < steps - 1; step += 1) {
      left = step;
      expect([step, await push(`layer ${step}`)]).toEqual([step, 507]);
      left = Infinity;
      const uploads: string[] = [];
      for await (const uploadId of registry.blobs.listUploads()) uploads.push(uploadId);
      expect(uploads).toEqual([]);
      // The reservation of the one upload that may be open is released.
      expect([step, await push(`layer ${step}`)]).toEqual([step, 201]);
    }
  },
);

test('internal errors contain only an ID that is in the log; a full disk and an unavailable store have their own errors', async () => {
  let failure: Error | undefined;
  await using registry = await openTestRegistry({
    beforeWrite: () => {
      if (failure) throw failure;
    },
  });
  const start = async (error: Error) => {
    failure = error;
    const answer = await registry.as('/v2/acme/draw/blobs/uploads/', { method: 'POST' });
    const body = JSON.parse(answer.body.toString()) as { errors: { code: string; detail: { id: string } }[] };
    return { ...answer, detail: body.errors[0]?.detail };
  };
  const failed = await start(new Error('An internal secret'));
  expect([failed.status, failed.code]).toEqual([500, 'UNKNOWN']);
  expect(failed.body.toString()).not.toContain('secret');
  expect(failed.detail).toEqual({ id: failed.headers['x-request-id'] });
  const lines = registry.logLines.filter((line) => line.includes(String(failed.headers['x-request-id'])));
  expect(lines.some((line) => line.includes('An internal secret'))).toBe(true);
  const full = await start(new BlobsError('no-space', 'No space'));
  expect([full.status, full.code]).toEqual([507, 'UNAVAILABLE']);
  const fullStore = await start(new StoreError('unavailable', 'No space', { isFull: true }));
  expect([fullStore.status, fullStore.code]).toEqual([507, 'UNAVAILABLE']);
  const lost = await start(new StoreError('unavailable', 'No store'));
  expect([lost.status, lost.headers['retry-after']]).toEqual([503, '5']);
});

test('a client that tries TLS gets an answer in plain HTTP, so that it falls back, and other clients continue', async () => {
  await using registry = await openTestRegistry();
  const socket = connect(registry.port, '127.0.0.1');
  const received: Buffer[] = [];
  socket.on('data', (chunk) => received.push(chunk)).on('error', () => {});
  socket.write(Buffer.from('16030100b9010000b50303', 'hex'));
  await once(socket, 'close');
  // Go's clients (docker, containerd, crane) fall back at once when a TLS answer begins with HTTP; at silence they retry.
  expect(Buffer.concat(received).toString()).toMatch(/^HTTP\/1\.1 400 /);
  expect((await registry.send('/v2/')).status).toBe(401);
});

test('an error reaches a client that is still sending, and the connection is closed after a while', async () => {
  await using registry = await openTestRegistry();
  const chunk = Buffer.alloc(1024 * 1024);
  const body = Readable.from([chunk, chunk, chunk, chunk]);
  const answer = await registry.send(`/v2/acme/draw/blobs/uploads/?digest=${sha256('')}`, { method: 'POST', body });
  expect([answer.status, answer.code]).toEqual([401, 'UNAUTHORIZED']);
});

const upload = `/v2/acme/draw/blobs/uploads/?digest=${sha256('')}`;

test.each([
  ['the quota', `POST ${upload}`, 200_000, { accountBytes: 100_000 }, 403],
  ['the size of a blob', `POST ${upload}`, 200_000, { blobBytes: 100_000 }, 413],
  ['the size of a manifest', 'PUT /v2/acme/draw/manifests/v1', 5_000_000, {}, 413],
])(
  'a client that waits for the answer before it continues learns at once that %s is exceeded',
  async (_what, requestLine, sizeBytes, limits, status) => {
    await using registry = await openTestRegistry({ limits });
    const authorization = `authorization: ${registry.basic('acme', registry.token)}`;
    for (const framing of [`content-length: ${sizeBytes + 100_000}`, 'transfer-encoding: chunked']) {
      const isChunked = framing.startsWith('transfer');
      const socket = connect(registry.port, '127.0.0.1').setEncoding('latin1');
      let received = '';
      socket.on('data', (text: Buffer | string) => (received += String(text)));
      const until = async (end: string) => {
        while (!received.endsWith(end)) await once(socket, 'data');
      };
      socket.write([`${requestLine} HTTP/1.1`, 'host: x', authorization, framing, '', ''].join('\r\n'));
      socket.write(isChunked ? chunkOf(Buffer.alloc(sizeBytes)) : Buffer.alloc(sizeBytes));
      await until(']}');
      expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      if (isChunked) {
        expect(received).toMatch(/connection: close/i);
        const closed = once(socket, 'close');
        socket.end('0\r\n\r\n');
        expect(await closed).toEqual([false]);
      } else {
        received = '';
        socket.write(Buffer.alloc(100_000));
        socket.write(['GET /v2/ HTTP/1.1', 'host: x', authorization, '', ''].join('\r\n'));
        await until('{}');
        expect(received).toMatch(/^HTTP\/1\.1 200 /);
        socket.destroy();
      }
    }
  },
);

function chunkOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

test('abandoned uploads, and the remains that crashes left, are deleted after a day', async () => {
  const clock = new ManualClock(new Date());
  await using registry = await openTestRegistry({ clock });
  const begun = await registry.as('/v2/acme/draw/blobs/uploads/', { method: 'POST' });
  const id = String(begun.headers['docker-upload-uuid']);
  await registry.blobs.createUpload('orphan');
  const bytesGone = { id: 'bytes-gone', repository: 'acme/draw', subject: 'acme', algorithm: 'sha256' as const };
  await registry.store.insert(uploadSessions, { ...bytesGone, startedAt: clock.now() });
  await clock.advance(2 * 3_600_000);
  expect((await registry.as(String(begun.headers.location))).status).toBe(204);
  await clock.advance(24 * 3_600_000);
  const collected = async () => {
    await clock.advance(600_000);
    return await registry.blobs.statUpload(id);
  };
  await expect.poll(collected).toBeUndefined();
  await expect.poll(async () => await registry.blobs.statUpload('orphan')).toBeUndefined();
  await expect.poll(async () => await registry.store.get(uploadSessions, 'bytes-gone')).toBeUndefined();
  expect(await registry.store.get(uploadSessions, id)).toBeUndefined();
});

test('closing cancels requests in progress, and keeps the received bytes', async () => {
  await using registry = await openTestRegistry();
  const begun = await registry.as('/v2/acme/draw/blobs/uploads/', { method: 'POST' });
  const endless = new Readable({ read: () => {} });
  const patch = registry.as(String(begun.headers.location), { method: 'PATCH', body: endless });
  endless.push('kept');
  const id = String(begun.headers['docker-upload-uuid']);
  await expect.poll(async () => (await registry.blobs.statUpload(id))?.sizeBytes).toBe(4);
  await registry.restart();
  expect((await patch).status).toBe(503);
  expect((await registry.as(String(begun.headers.location))).headers.range).toBe('0-3');
});

test('every request writes one log line and is counted in the metrics', async () => {
  await using registry = await openTestRegistry();
  await pushImage(registry, { repository: 'acme/draw', reference: 'v1' });
  await registry.as('/v2/acme/draw/manifests/v1');
  const line = () => registry.logLines.find((each) => each.includes('"manifest-get"')) ?? '{}';
  await expect
    .poll(() => JSON.parse(line()) as object)
    .toMatchObject({
      msg: 'Registry request',
      operation: 'manifest-get',
      repository: 'acme/draw',
      tag: 'v1',
      subject: 'acme',
      code: 200,
    });
  const text = await registry.metrics.metrics();
  expect(text).toContain('berth_registry_request_seconds_count{operation="manifest-put",code="2xx"} 1');
  expect(text).toMatch(/berth_registry_received_bytes_total [1-9]/);
});
