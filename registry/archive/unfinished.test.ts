/** Unfinished uploads: the client disconnects, the platform stops, or too little arrives. */
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { services } from '../../model/service.ts';
import { blobOf, imageOf, layoutOf, savedOf, tarOf } from '../../test/kit/registry/archives.ts';
import { mebibyte, openArchiveFixture, repository, send } from '../testing/archive-fixture.ts';
import type { ArchiveFixture } from '../testing/archive-fixture.ts';

let fixture: ArchiveFixture;
beforeEach(async () => void (fixture = await openArchiveFixture()));
afterEach(async () => await fixture[Symbol.asyncDispose]());

describe('a client that disconnects in the middle', () => {
  test.each(['application/x-tar', 'multipart/form-data; boundary=cut'])(
    'as %s: leaves reusable blobs and nothing else',
    async (type) => {
      const url = await fixture.open();
      const [small, large] = ['a small layer', randomBytes(2 * mebibyte)];
      const { layers, config, manifest } = imageOf([small, large]);
      const tar = await tarOf(layoutOf([...layers, config, manifest], [{ blob: manifest, name: 'v1' }]));
      const request = httpRequest(url, {
        method: 'POST',
        agent: false,
        headers: { 'content-type': type, 'content-length': tar.length + 1000 },
      });
      request.on('error', () => {});
      if (type.startsWith('multipart')) {
        request.write('--cut\r\nContent-Disposition: form-data; name="archive"; filename="x"\r\n\r\n');
      }
      request.write(tar.subarray(0, mebibyte));
      await expect.poll(async () => await fixture.registry.blobs.stat(blobOf(small).digest)).toBeDefined();
      await expect.poll(() => fixture.uploadsLeft()).toHaveLength(1);
      request.destroy();
      await expect.poll(() => fixture.uploadsLeft()).toEqual([]);
      expect(await fixture.registry.store.get(services, repository)).toBeUndefined();
      expect(await send(url, tar)).toEqual({ digest: manifest.digest, tag: 'v1' });
    },
  );
});

test('a stalled upload ends when the platform stops', async () => {
  const url = await fixture.open();
  const tar = await tarOf(savedOf([randomBytes(2 * mebibyte)]));
  const { promise: answered, resolve } = Promise.withResolvers<number | undefined>();
  const headers = { 'content-type': 'application/x-tar', 'content-length': tar.length };
  const request = httpRequest(url, { method: 'POST', agent: false, headers }, (response) =>
    resolve(response.statusCode),
  );
  request.on('error', () => {});
  request.write(tar.subarray(0, mebibyte));
  await expect.poll(() => fixture.uploadsLeft()).toHaveLength(1);
  fixture.closing.abort();
  expect(await answered).toBe(200);
  expect(await fixture.uploadsLeft()).toEqual([]);
  request.destroy();
});

test.each(['application/x-tar', 'multipart/form-data; boundary=slow'])(
  'an upload that is too slow is cut after some minutes: %s',
  async (type) => {
    const clock = new ManualClock(new Date());
    const url = await fixture.open({ clock });
    const tar = await tarOf(savedOf([randomBytes(2 * mebibyte)]));
    const { promise: answered, resolve } = Promise.withResolvers<string>();
    const request = httpRequest(url, { method: 'POST', agent: false, headers: { 'content-type': type } }, (response) =>
      response.setEncoding('utf8').once('data', resolve),
    );
    request.on('error', () => {});
    if (type.startsWith('multipart')) {
      request.write('--slow\r\nContent-Disposition: form-data; name="archive"; filename="x"\r\n\r\n');
    }
    request.write(tar.subarray(0, mebibyte));
    const receivedBytes = async () => {
      const [uploadId = ''] = await fixture.uploadsLeft();
      return uploadId === '' ? 0 : ((await fixture.registry.blobs.statUpload(uploadId))?.sizeBytes ?? 0);
    };
    await expect.poll(receivedBytes).toBeGreaterThan(mebibyte / 2);
    let answer: string | undefined;
    void answered.then((text) => (answer = text));
    // Minutes count only while the server waits for the client, which begins a moment from now.
    const aMinuteLater = async () => {
      await clock.advance(60_000);
      request.write('drop');
      return answer;
    };
    await expect.poll(aMinuteLater).toBeDefined();
    expect(JSON.parse(answer ?? '')).toMatchObject({
      code: 'BadRequest',
      message: expect.stringMatching(/Too little/),
    });
    expect(await fixture.uploadsLeft()).toEqual([]);
    request.destroy();
  },
);

test.each([
  ['before the file', ''],
  ['after the file', '--slow\r\nContent-Disposition: form-data; name="archive"; filename="x"\r\n\r\n$archive\r\n'],
])('a form whose fields stall %s is cut after some seconds', async (_where, file) => {
  const clock = new ManualClock(new Date());
  const url = await fixture.open({ clock });
  const { promise: answered, resolve } = Promise.withResolvers<string>();
  const headers = { 'content-type': 'multipart/form-data; boundary=slow' };
  const request = httpRequest(url, { method: 'POST', agent: false, headers }, (response) =>
    response.setEncoding('utf8').once('data', resolve),
  );
  request.on('error', () => {});
  for (const part of file.split(/(\$archive)/)) {
    request.write(part === '$archive' ? await tarOf(savedOf(['a layer'])) : part);
  }
  request.write('--slow\r\nContent-Disposition: form-data; name="tag"\r\n\r\nv');
  let answer: string | undefined;
  void answered.then((text) => (answer = text));
  const secondsLater = async () => {
    await clock.advance(30_000);
    return answer;
  };
  await expect.poll(secondsLater).toBeDefined();
  expect(JSON.parse(answer ?? '')).toMatchObject({ code: 'RequestTimeout' });
  request.destroy();
});

test('the next archive of an account with stalled uploads is not read before one of them is cut', async () => {
  const clock = new ManualClock(new Date());
  const url = await fixture.open({ clock, archiveLimits: { maxOfAccount: 2 } });
  const packed = zstdCompressSync(await tarOf(savedOf([randomBytes(4 * mebibyte)])));
  const begin = () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const headers = { 'content-type': 'application/zstd', 'content-length': packed.length };
    const request = httpRequest(url, { method: 'POST', agent: false, headers }, (response) =>
      response.setEncoding('utf8').once('data', resolve),
    );
    request.on('error', () => {});
    request.write(packed.subarray(0, 2 * mebibyte));
    return { request, answered: promise };
  };
  const stalled = [begin(), begin()];
  // Both wait for more bytes from now on, and so are cut together.
  const sizes = async () => {
    const { blobs } = fixture.registry;
    const found = await Promise.all((await fixture.uploadsLeft()).map(async (id) => await blobs.statUpload(id)));
    return found.filter((upload) => upload && upload.sizeBytes > 1.5 * mebibyte);
  };
  await expect.poll(sizes).toHaveLength(2);
  const waiting = begin();
  let answers: string[] | undefined;
  void Promise.all(stalled.map(({ answered }) => answered)).then((texts) => (answers = texts));
  const aMinuteLater = async () => {
    expect((await fixture.uploadsLeft()).length).toBeLessThanOrEqual(2);
    if (!answers) await clock.advance(60_000);
    return answers;
  };
  await expect.poll(aMinuteLater).toEqual([expect.stringMatching(/Too little/), expect.stringMatching(/Too little/)]);
  waiting.request.end(packed.subarray(2 * mebibyte));
  expect(JSON.parse(await waiting.answered)).toMatchObject({ tag: 'v1' });
  for (const { request } of stalled) request.destroy();
});
