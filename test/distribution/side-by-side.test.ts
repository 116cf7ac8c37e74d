/** Two registry processes with one store: each continues uploads that the other began, also after one is killed. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testDrivers } from '../kit/servers/drivers.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { ProcessName } from '../kit/platform/environments.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { sendTo, sha256, sha512 } from '../kit/registry/registry.ts';
import type { Sent } from '../kit/registry/registry.ts';

const drivers = testDrivers().find((each) => each !== 'embedded');

describe.skipIf(!drivers)('two registry processes', () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    if (drivers) platform = await startPlatform({ drivers, only: ['api', 'registry', 'registry2'] });
  });
  afterAll(async () => await platform?.[Symbol.asyncDispose]());

  const send = async (name: ProcessName, path: string, sent: Sent = {}) => {
    const login = Buffer.from(`${platform.account}:${platform.token}`).toString('base64');
    const port = Number(platform.announcedBy(name).registry.split(':').at(-1));
    return await sendTo(port, path, { ...sent, headers: { authorization: `Basic ${login}`, ...sent.headers } });
  };
  const one = 'registry';
  const two = 'registry2';
  const uploads = '/v2/home/sides/blobs/uploads/';

  test.each([
    ['sha256', sha256],
    ['sha512', sha512],
  ] as const)(
    'an upload with %s that began in one process continues and finishes in the other',
    async (algorithm, digestOf) => {
      const bytes = randomBytes(600_000);
      const begun = await send(one, `${uploads}?digest-algorithm=${algorithm}`, { method: 'POST' });
      const location = String(begun.headers.location);
      for (const [at, name] of ([two, one, two] as const).entries()) {
        const [start, end] = [at * 200_000, at * 200_000 + 199_999];
        const chunk = {
          method: 'PATCH',
          headers: { 'content-range': `${start}-${end}` },
          body: bytes.subarray(start, end + 1),
        };
        const patched = await send(name, location, chunk);
        expect([patched.status, patched.headers.range]).toEqual([202, `0-${end}`]);
        expect((await send(name === one ? two : one, location)).headers.range).toBe(`0-${end}`);
        expect((await send(name === one ? two : one, location, chunk)).status).toBe(416);
      }
      expect((await send(one, `${location}?digest=${digestOf(bytes)}`, { method: 'PUT' })).status).toBe(201);
      for (const name of [one, two] as const) {
        const pulled = await send(name, `/v2/home/sides/blobs/${digestOf(bytes)}`);
        expect([pulled.status, pulled.body.equals(bytes)]).toEqual([200, true]);
        expect((await send(name, location)).code).toBe('BLOB_UPLOAD_UNKNOWN');
      }
    },
  );

  test('after a process is killed, the other has its bytes, and a new process continues', async () => {
    const location = String((await send(one, uploads, { method: 'POST' })).headers.location);
    await send(one, location, { method: 'PATCH', body: 'before, ' });
    await platform.kill([one]);
    const status = await send(two, location);
    expect([status.status, status.headers.range]).toEqual([204, '0-7']);
    expect((await send(two, location, { method: 'PATCH', body: 'meanwhile, ' })).status).toBe(202);
    await platform.restart([one]);
    expect((await send(one, location, { method: 'PATCH', body: 'after' })).status).toBe(202);
    const digest = sha256('before, meanwhile, after');
    expect((await send(two, `${location}?digest=${digest}`, { method: 'PUT' })).status).toBe(201);
  });

  test('a session that is cancelled in one process ends in both', async () => {
    const location = String((await send(one, uploads, { method: 'POST' })).headers.location);
    expect((await send(two, location, { method: 'DELETE' })).status).toBe(204);
    for (const name of [one, two] as const) expect((await send(name, location)).status).toBe(404);
  });

  test('manifests, tags and deletions of one process are visible in the other at once', async () => {
    const type = 'application/vnd.oci.image.index.v1+json';
    const body = JSON.stringify({ schemaVersion: 2, mediaType: type, manifests: [] });
    const path = '/v2/home/sides/manifests/v1';
    for (let round = 0; round < 3; round += 1) {
      const [here, there] = round % 2 === 0 ? ([one, two] as const) : ([two, one] as const);
      expect((await send(here, path, { method: 'PUT', headers: { 'content-type': type }, body })).status).toBe(201);
      expect((await send(there, path)).body.toString()).toBe(body);
      expect((await send(there, '/v2/home/sides/tags/list')).body.toString()).toContain('"v1"');
      expect((await send(there, `/v2/home/sides/manifests/${sha256(body)}`, { method: 'DELETE' })).status).toBe(202);
      expect((await send(here, path, { method: 'HEAD' })).status).toBe(404);
    }
  });

  test('concurrent requests in both processes to finish one upload publish the blob, and no answer contradicts that', async () => {
    const location = String((await send(one, uploads, { method: 'POST' })).headers.location);
    const bytes = randomBytes(100_000);
    await send(two, location, { method: 'PATCH', body: bytes });
    const digest = sha256(bytes);
    const puts = await Promise.all(
      Array.from(
        { length: 8 },
        async (_, at) => await send(at % 2 === 0 ? one : two, `${location}?digest=${digest}`, { method: 'PUT' }),
      ),
    );
    expect(puts.some(({ status }) => status === 201)).toBe(true);
    expect(puts.every(({ status }) => [201, 404, 409].includes(status))).toBe(true);
    expect((await send(one, `/v2/home/sides/blobs/${digest}`)).body.equals(bytes)).toBe(true);
  });
});
