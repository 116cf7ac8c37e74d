// Takes about 25 s
/** Image archives of all common tools: uploaded to the API, run, and downloaded again. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, createZstdCompress } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { imageObject } from '../../contract/service.ts';
import { findProgram, runCommand } from '../../setup/command.ts';
import { packImage } from '../../setup/image.ts';
import { imageOf, indexOf, layoutOf, ociIndexType, tarOf } from '../kit/registry/archives.ts';
import { api } from '../kit/platform/api-client.ts';
import { testImage } from '../kit/engines/images.ts';
import { onAllEngines, Fixture } from './fixture.ts';
import { sha256 } from '../kit/registry/digests.ts';

const skopeo = await findProgram('skopeo');
const podman = await findProgram('podman');

const thisArchitecture = process.arch === 'x64' ? 'amd64' : process.arch;

onAllEngines((setting) => {
  let fixture: Fixture;
  let folder: string;
  /** The image's name in engines, unique because tests share engines. */
  const name = `berth-test/archive-${randomBytes(4).toString('hex')}`;
  /** The ID of the image in any engine: the digest of its config. */
  let imageId: string;

  beforeAll(async () => {
    fixture = await Fixture.open(setting);
    folder = await mkdtemp(join(tmpdir(), 'berth-archives-'));
    const image = { ...(await testImage('serve', name)), tag: `${name}:v1` };
    await pipeline(packImage(image), createWriteStream(file('packed.tar')));
    await fixture.docker('load', '--quiet', '--input', file('packed.tar'));
    imageId = await fixture.docker('image', 'inspect', '--format', '{{.Id}}', `${name}:v1`);
    await fixture.docker('save', '--output', file('saved.tar'), `${name}:v1`);
    await fixture.docker('image', 'rm', '--force', `${name}:v1`);
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await fixture[Symbol.asyncDispose]();
  });

  function file(path: string): string {
    return join(folder, path);
  }

  function imagesPath(service: string): string {
    return `/v2/service/${fixture.platform.account}/${service}/images`;
  }

  async function upload(service: string, archive: Blob, fields: Readonly<Record<string, string>> = {}) {
    const body = new FormData();
    body.append('archive', archive, 'image.tar');
    for (const [field, value] of Object.entries(fields)) body.append(field, value);
    const headers = { authorization: `Bearer ${fixture.platform.token}` };
    return await fetch(`${fixture.platform.apiUrl}${imagesPath(service)}`, { method: 'POST', headers, body });
  }

  async function uploadFile(service: string, path: string, fields?: Readonly<Record<string, string>>) {
    const answer = await upload(service, new Blob([await readFile(file(path))]), fields);
    const text = await answer.text();
    if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${text}`);
    expect(answer.headers.get('content-type')).toBe('application/json');
    const image = imageObject.parse(JSON.parse(text));
    expect(answer.headers.get('location')).toBe(
      `${fixture.platform.apiUrl}${imagesPath(service)}/${image.digest}/archive`,
    );
    return image;
  }

  async function download(service: string, digest: string): Promise<Buffer> {
    const answer = await api(fixture.platform, `${imagesPath(service)}/${digest}/archive`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/x-tar']);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(answer.headers.get('content-length')).toBe(String(bytes.length));
    return bytes;
  }

  test('an archive of docker save is uploaded, listed, spawned, downloaded, and loaded as the same image', async () => {
    const image = await uploadFile('saved', 'saved.tar');
    expect(image).toMatchObject({ repository: `${fixture.platform.account}/saved`, tag: 'v1' });
    const { images } = await fixture.get<{ images: unknown[] }>(imagesPath('saved'));
    expect(images).toEqual([image]);
    const session = await fixture.connectReady('saved', { spawn: { tag: 'v1' } });
    expect(await (await fetch(session.url)).text()).toContain('Hello from a test backend');
    expect((await fixture.backend(session)).image_digest).toBe(image.digest);
    await fixture.terminate(session, true);

    const bytes = await download('saved', image.digest);
    expect((await download('saved', image.digest)).equals(bytes)).toBe(true);
    await writeFile(file('downloaded.tar'), bytes);
    const loaded = `${fixture.platform.registry}/${fixture.platform.account}/saved:v1`;
    expect(await fixture.docker('load', '--input', file('downloaded.tar'))).toContain(`Loaded image: ${loaded}`);
    try {
      expect(await fixture.docker('image', 'inspect', '--format', '{{.Id}}', loaded)).toBe(imageId);
      const run = ['run', '--rm', '--network', 'none', loaded, '/bin/sh', '-c', 'echo ran $VARIANT'];
      expect(await fixture.docker(...run)).toBe(`ran ${name}`);
    } finally {
      await fixture.docker('image', 'rm', '--force', loaded);
    }
    expect(await uploadFile('again', 'downloaded.tar')).toMatchObject({ digest: image.digest, tag: 'v1' });
  });

  test('gzip and zstd archives become the same image, sent by curl as a form or as the body', async () => {
    await pipeline(createReadStream(file('saved.tar')), createGzip(), createWriteStream(file('saved.tar.gz')));
    await pipeline(createReadStream(file('saved.tar')), createZstdCompress(), createWriteStream(file('saved.tar.zst')));
    const { digest } = await uploadFile('curl', 'saved.tar.gz');
    const target = `${fixture.platform.apiUrl}${imagesPath('curl')}`;
    const common = ['--silent', '--header', `Authorization: Bearer ${fixture.platform.token}`];
    const form = ['--form', `archive=@${file('saved.tar.zst')}`, '--form', 'tag=form', target];
    expect(imageObject.parse(JSON.parse(await runCommand('curl', [...common, ...form])))).toMatchObject({
      digest,
      tag: 'form',
    });
    const body = [
      '--request',
      'POST',
      '--header',
      'Content-Type: application/gzip',
      '--upload-file',
      file('saved.tar.gz'),
      `${target}?tag=body`,
    ];
    expect(imageObject.parse(JSON.parse(await runCommand('curl', [...common, ...body])))).toMatchObject({
      digest,
      tag: 'body',
    });
  });

  test.skipIf(skopeo === undefined)(
    'archives of skopeo and podman can be uploaded, and both can read downloaded archives',
    async () => {
      await runCommand('skopeo', [
        'copy',
        '--quiet',
        `docker-archive:${file('packed.tar')}`,
        `oci-archive:${file('oci.tar')}:v1`,
      ]);
      await runCommand('skopeo', [
        'copy',
        '--quiet',
        `docker-archive:${file('packed.tar')}`,
        `docker-archive:${file('docker.tar')}:x/y:v1`,
      ]);
      const saved = await uploadFile('skopeo', 'docker.tar');
      const oci = await uploadFile('skopeo', 'oci.tar', { tag: 'oci' });
      const index = execFileSync('tar', ['xOf', file('oci.tar'), 'index.json'], { encoding: 'utf8' });
      expect(index).toContain(`"digest":"${oci.digest}"`);
      for (const { digest } of [saved, oci]) {
        await writeFile(file('out.tar'), await download('skopeo', digest));
        for (const kind of ['oci-archive', 'docker-archive']) {
          await runCommand('skopeo', [
            'copy',
            '--quiet',
            `${kind}:${file('out.tar')}`,
            `dir:${file(`${kind}-${digest.slice(-8)}`)}`,
          ]);
        }
      }
      const copied = await readFile(file(`oci-archive-${oci.digest.slice(-8)}/manifest.json`));
      expect(sha256(copied)).toBe(oci.digest);
      if (podman === undefined) return;
      const own = ['--root', file('podman'), '--runroot', file('run'), '--storage-driver', 'vfs'];
      expect(await runCommand('podman', [...own, 'load', '--input', file('out.tar')])).toContain('/skopeo:oci');
      for (const format of ['oci-archive', 'docker-archive']) {
        const tag = `${fixture.platform.registry}/${fixture.platform.account}/skopeo:oci`;
        await runCommand('podman', [
          ...own,
          'save',
          '--quiet',
          '--format',
          format,
          '--output',
          file(`${format}.tar`),
          tag,
        ]);
        expect(await uploadFile('podman', `${format}.tar`)).toMatchObject({ tag: 'oci' });
      }
    },
  );

  test('a multi-platform image is downloaded completely, and docker loads the image of its platform', async () => {
    const layer = await tarOf([{ name: 'file', content: 'of this node' }]);
    const [other, own] = [imageOf([await tarOf([{ name: 'file', content: 'elsewhere' }])]), imageOf([layer])];
    const index = indexOf([other.manifest, own.manifest], { architectures: ['s390x', thisArchitecture] });
    const blobs = [...[other, own].flatMap(({ layers, config, manifest }) => [...layers, config, manifest]), index];
    const layout = layoutOf(blobs, [{ blob: index, mediaType: ociIndexType }]);
    const answer = await upload('multi', new Blob([await tarOf(layout)]));
    const { digest } = imageObject.parse(await answer.json());
    expect(digest).toBe(index.digest);
    await writeFile(file('multi.tar'), await download('multi', digest));
    const names = execFileSync('tar', ['tf', file('multi.tar')], { encoding: 'utf8' })
      .trim()
      .split('\n');
    const paths = blobs.map((blob) => `blobs/${blob.digest.replace(':', '/')}`);
    expect(names.toSorted()).toEqual(['index.json', 'manifest.json', 'oci-layout', ...paths].toSorted());
    await fixture.docker('load', '--input', file('multi.tar'));
    const loaded = `${fixture.platform.registry}/${fixture.platform.account}/multi:latest`;
    expect(await fixture.docker('image', 'inspect', '--format', '{{.Id}}', loaded)).toBe(own.config.digest);
    await fixture.docker('image', 'rm', '--force', loaded);
  });

  test('HEAD returns the size; an unknown image, a hidden service and bad tokens are rejected', async () => {
    const { digest } = await uploadFile('rejected', 'saved.tar');
    const path = `${imagesPath('rejected')}/${digest}/archive`;
    const head = await api(fixture.platform, path, { method: 'HEAD' });
    const size = (await download('rejected', digest)).length;
    expect([head.status, head.headers.get('content-length'), head.headers.get('content-disposition')]).toEqual([
      200,
      String(size),
      `attachment; filename="${fixture.platform.account}-rejected-v1.tar"`,
    ]);
    const codeOf = async (answer: Response) => {
      const { error } = (await answer.json()) as { error: { code: string; status: number } };
      expect(error.status).toBe(answer.status);
      return error.code;
    };
    const unknown = [`sha256:${'0'.repeat(64)}`, 'latest', 'sha256:..%2f..'];
    for (const each of unknown) {
      expect(await codeOf(await api(fixture.platform, `${imagesPath('rejected')}/${each}/archive`))).toBe(
        'ImageNotFound',
      );
    }
    expect(await codeOf(await api(fixture.platform, `${imagesPath('absent')}/${digest}/archive`))).toBe(
      'ServiceNotFound',
    );
    expect(await codeOf(await api(fixture.platform, path.replace(fixture.platform.account, 'other')))).toBe(
      'ServiceNotFound',
    );
    expect(await codeOf(await fetch(`${fixture.platform.apiUrl}${path}`))).toBe('Unauthorized');
    const body = new FormData();
    body.append('archive', new Blob(['x'.repeat(100_000)]), 'x');
    const post = async (target: string, headers: Record<string, string>) =>
      await codeOf(await fetch(`${fixture.platform.apiUrl}${target}`, { method: 'POST', headers, body }));
    const authorization = `Bearer ${fixture.platform.token}`;
    expect(await post('/v2/service/other/rejected/images', { authorization })).toBe('ServiceNotFound');
    expect(await post(imagesPath('Not_Legal'), { authorization })).toBe('BadRequest');
    expect(await post(`${imagesPath('rejected')}?tga=x`, { authorization })).toBe('BadRequest');
    expect(await post(imagesPath('rejected'), {})).toBe('Unauthorized');
    expect(await post(imagesPath('rejected'), { authorization })).toBe('BadRequest');
  });

  test('a client that sends gigabytes without a token receives the error, and is disconnected', async () => {
    const { hostname, port } = new URL(fixture.platform.apiUrl);
    const headers = { 'content-type': 'application/x-tar', 'content-length': 1e12 };
    const request = httpRequest({ hostname, port, path: imagesPath('endless'), method: 'POST', headers, agent: false });
    request.on('error', () => {});
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    request.on('close', resolve);
    const chunk = Buffer.alloc(1024 * 1024);
    const more = () => {
      while (!request.destroyed && request.write(chunk));
    };
    request.on('drain', more);
    more();
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    expect([answer.statusCode, answer.headers.connection]).toEqual([401, 'close']);
    answer.resume();
    await closed;
  });

  test('an upload is audited with the digest of its image, and ends when its token is revoked', async () => {
    const { digest } = await uploadFile('audited', 'saved.tar');
    const { platform } = fixture;
    const ofAccount = `/v2/account/${platform.account}`;
    const { records } = (await (await api(platform, `${ofAccount}/audit?limit=1`)).json()) as {
      records: Record<string, unknown>[];
    };
    const details = { account: platform.account, service: 'audited', tag: 'v1', digest };
    expect(records).toEqual([expect.objectContaining({ action: 'uploadImage', status: 201, details })]);

    const body = JSON.stringify({ name: 'upload', scopes: ['push'] });
    const created = await api(platform, `${ofAccount}/token`, { method: 'POST', body });
    const { id, token } = (await created.json()) as { id: string; token: string };
    const { hostname, port } = new URL(platform.apiUrl);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/x-tar', 'content-length': 1e9 };
    const request = httpRequest({ hostname, port, path: imagesPath('revoked'), method: 'POST', headers });
    request.on('error', () => {});
    request.write((await readFile(file('saved.tar'))).subarray(0, 1_000_000));
    await once(request, 'drain');
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    expect((await api(platform, `${ofAccount}/token/${id}/revoke`, { method: 'POST' })).status).toBe(200);
    const [answer] = await answered;
    // An API that checked the token only once would continue the upload until it is too slow, and return another status.
    expect(answer.statusCode).toBe(401);
    request.destroy();
    expect((await api(platform, imagesPath('revoked'))).status).toBe(404);
  });

  test('a client that disconnects during a large upload leaves only blobs that can be reused', async () => {
    const { hostname, port } = new URL(fixture.platform.apiUrl);
    const headers = {
      authorization: `Bearer ${fixture.platform.token}`,
      'content-type': 'application/x-tar',
      'content-length': 1e9,
    };
    const request = httpRequest({ hostname, port, path: imagesPath('left'), method: 'POST', headers });
    request.on('error', () => {});
    request.write((await readFile(file('saved.tar'))).subarray(0, 1_000_000));
    await new Promise((resolve) => request.once('drain', resolve));
    request.destroy();
    expect((await api(fixture.platform, imagesPath('left'))).status).toBe(404);
    expect(await uploadFile('left', 'saved.tar')).toMatchObject({ tag: 'v1' });
    expect(fixture.platform.log).not.toContain('Request failed');
  });
});
