/** Manifests that exhaust or mislead parsers. */
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { sha256 } from '../../kit/registry/registry.ts';
import type { Answer } from '../../kit/registry/registry.ts';
import type { Fixture } from '../fixture.ts';

const imageType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';
const configType = 'application/vnd.oci.image.config.v1+json';
const limit = 4 * 1024 * 1024;

const config = { mediaType: configType, digest: sha256('{}'), size: 2 };
const image = { schemaVersion: 2, mediaType: imageType, config, layers: [] as object[] };
const text = (more: object) => JSON.stringify({ ...image, ...more });
/** An image with this text at its end, for JSON that `JSON.stringify` cannot produce. */
const ending = (more: string) => `${JSON.stringify(image).slice(0, -1)},${more}}`;
/** A document of almost 4 MiB, filled with members. */
const flood = (member: (at: number) => string, begin: string, end: string) => {
  let body = begin;
  for (let at = 0; body.length < limit - 200; at += 1) body += `${member(at)},`;
  return body.slice(0, -1) + end;
};

const rejected: Record<string, () => string | Uint8Array> = {
  'a repeated name': () => ending(`"config":${JSON.stringify({ ...config, digest: sha256('other') })}`),
  'a repeated name, once escaped': () => ending('"l\\u0061yers":[]'),
  'a repeated name in a layer': () =>
    ending('"x":0').replace(
      '"layers":[]',
      `"layers":[{"mediaType":"a/b","digest":"${config.digest}","size":2,"size":3}]`,
    ),
  'a repeated name in an ignored field': () => ending('"org.example":{"a":[{"b":1,"b":2}]}'),
  'the repeated name of an annotation': () => ending('"annotations":{"a":"1","a":"2"}'),
  'a field and the same field in another case': () => ending('"Layers":[]'),
  'a field in another case': () => JSON.stringify({ ...image, layers: undefined, Layers: [config] }),
  'a field with a long s': () => ending('"layer\u017f":[]'),
  'a digest and the same field in another case': () => text({ layers: [{ ...config, Digest: sha256('other') }] }),
  'an image that is also an index': () => text({ manifests: [] }),
  'an index that is also an image': () => text({ mediaType: indexType, manifests: [config] }),
  'the mediaType of another kind': () => text({ mediaType: indexType }),
  'a byte order mark': () => `\uFEFF${JSON.stringify(image)}`,
  'broken UTF-8': () => Buffer.concat([Buffer.from('{"'), Buffer.from([0xff]), Buffer.from('":1}')]),
  'a NUL': () => `${JSON.stringify(image)}\0`,
  'two documents': () => `${JSON.stringify(image)}${JSON.stringify(image)}`,
  nothing: () => '',
  'an array': () => '[]',
  'a prototype with the missing fields': () => `{"schemaVersion":2,"__proto__":${JSON.stringify(image)}}`,
  'a negative size': () => text({ config: { ...config, size: -1 } }),
  'a fractional size': () => text({ config: { ...config, size: 2.5 } }),
  'a size beyond 2^53': () => JSON.stringify(image).replace('"size":2', '"size":9007199254740993'),
  'an infinite size': () => JSON.stringify(image).replace('"size":2', '"size":1e999'),
  'a size as text': () => text({ config: { ...config, size: '2' } }),
  'a path as a digest': () => text({ config: { ...config, digest: 'sha256:../../x' } }),
  'a digest that is an object': () => text({ config: { ...config, digest: { $ne: '' } } }),
  'a mediaType that would end a header': () => text({ mediaType: `${imageType}\r\nx: y` }),
  'deep nesting': () => '['.repeat(100_000) + ']'.repeat(100_000),
  'deep nesting in an ignored field': () => ending(`"x":${'{"x":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
  'a flood of layers': () => flood(() => '{}', '{"schemaVersion":2,"layers":[', ']}'),
  'a flood of numbers': () => flood(() => '0', ending('"x":[').slice(0, -1), ']}'),
  'a flood of annotations': () =>
    flood((at) => `"${at.toString(36)}":""`, ending('"annotations":{').slice(0, -1), '}}'),
  'a flood of fields': () => flood((at) => `"${at.toString(36)}":0`, '{', '}'),
  '100,000 children': () =>
    JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: Array.from({ length: 100_000 }, () => ({})) }),
};

export function declareManifests(fixture: Fixture): void {
  const put = async (reference: string, body: string | Uint8Array | Readable, type = imageType): Promise<Answer> =>
    await fixture.send(`/v2/home/hostile/manifests/${reference}`, {
      method: 'PUT',
      headers: { 'content-type': type },
      body,
    });

  test('a manifest that is ambiguous, or expensive to parse, is rejected', async () => {
    await fixture.blob('home/hostile', '{}');
    await fixture.blob('home/hostile', 'other');
    for (const [name, body] of Object.entries(rejected)) {
      const answer = await put('v1', body());
      expect([name, answer.status, answer.code]).toEqual([name, 400, 'MANIFEST_INVALID']);
      expect(answer.body.length).toBeLessThan(1_000);
    }
    expect((await fixture.send('/v2/home/hostile/manifests/v1')).status).toBe(404);
  });

  test('a descriptor with a wrong size is rejected, even beside one with the right size', async () => {
    await fixture.blob('home/hostile', '{}');
    const wrong = { ...config, mediaType: 'application/vnd.example.layer', size: 3 };
    for (const layers of [[wrong], [wrong, config], [config, wrong]]) {
      expect((await put('v1', text({ layers }))).code).toBe('SIZE_INVALID');
    }
  });

  test('an index of a manifest that does not exist is rejected', async () => {
    // An index cannot contain its own digest unless the hash is broken, so this tests the digest of a missing index.
    const own = { mediaType: indexType, digest: sha256('the index that is to come'), size: 100 };
    const index = { schemaVersion: 2, mediaType: indexType, manifests: [own] };
    expect((await put('cycle', JSON.stringify(index), indexType)).code).toBe('MANIFEST_BLOB_UNKNOWN');
  });

  test('an unusual but valid manifest is stored unchanged', async () => {
    await fixture.blob('home/hostile', '{}');
    const bodies = [
      text({ annotations: { 'a.b.$c': 'x', $set: 'y', '': 'z', constructor: 'c' } }),
      ending('"annotations":{"__proto__":"x"}'),
      text({ 'org.example': { Digest: 1, digest: 2 }, annotations: { Size: '1', size: '2' } }),
      text({ subject: { ...config, mediaType: imageType, digest: sha256('absent') } }),
      text({ artifactType: '\ud800', subject: { ...config, mediaType: imageType, digest: sha256('nowhere') } }),
      ending(`"x":${'['.repeat(90)}${']'.repeat(90)}`),
      text({ annotations: { html: '<script>alert(1)</script>', nul: '\0', emoji: '😀' } }),
    ];
    for (const body of bodies) {
      expect([body, (await put(sha256(body), body)).status]).toEqual([body, 201]);
      const pulled = await fixture.send(`/v2/home/hostile/manifests/${sha256(body)}`);
      expect(pulled.body.toString()).toBe(body);
    }
    const listed = await fixture.send(`/v2/home/hostile/referrers/${sha256('absent')}`);
    expect(JSON.parse(listed.body.toString())).toMatchObject({ manifests: [{ digest: sha256(bodies[3] ?? '') }] });
  });

  test('a manifest with HTML runs no script in a browser', async () => {
    const body = JSON.stringify({ html: '<script>alert(1)</script>' });
    expect((await put('page', body, 'text/html')).status).toBe(201);
    const { headers } = await fixture.send('/v2/home/hostile/manifests/page');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['content-security-policy']).toBe("default-src 'none'; sandbox");
  });

  test('a manifest that is too large is rejected: with a length, chunked, and endless', async () => {
    const chunk = Buffer.alloc(64 * 1024, 0x20);
    let sent = 0;
    const endless = new Readable({
      read() {
        sent += chunk.length;
        this.push(chunk);
      },
    });
    for (const body of [Buffer.alloc(limit + 1, 0x20), Readable.from([Buffer.alloc(limit + 1, 0x20)]), endless]) {
      const outcome = await put('v1', body).catch((error: unknown) => error as NodeJS.ErrnoException);
      // The registry disconnects a client that does not stop sending; the client may notice that before the response.
      if (body === endless && !('status' in outcome)) expect(outcome.code).toBeOneOf(['ECONNRESET', 'EPIPE']);
      else expect([(outcome as Answer).status, outcome.code]).toEqual([413, 'SIZE_INVALID']);
    }
    endless.destroy();
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });
}
