/** Query parameters that are lists, objects, extreme numbers, or text with line breaks. */
import { expect, test } from 'vitest';
import { sha256 } from '../../kit/registry/registry.ts';
import { statusAndCode } from '../fixture.ts';
import type { Fixture } from '../fixture.ts';

const digest = sha256('still here');

export function declareQueries(fixture: Fixture): void {
  const image = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json', layers: [] };

  test('a repeated parameter is rejected, and an object as a parameter is ignored', async () => {
    const repeated: [string, string][] = [
      ['POST', `blobs/uploads/?mount=${digest}&mount=${digest}`],
      ['POST', `blobs/uploads/?mount=${digest}&from=home/a&from=home/b`],
      ['POST', `blobs/uploads/?digest=${digest}&digest=${digest}`],
      ['POST', 'blobs/uploads/?digest-algorithm=sha256&digest-algorithm=sha512'],
      ['GET', 'tags/list?n=1&n=2'],
      ['GET', 'tags/list?last=a&last=b'],
      ['GET', `referrers/${digest}?artifactType=a&artifactType=b`],
    ];
    for (const [method, path] of repeated) {
      const answer = await fixture.send(`/v2/home/queries/${path}`, { method });
      expect([path, answer.status, answer.code]).toEqual([path, 400, 'UNSUPPORTED']);
    }
    // Brackets are not operators but part of the name, and parameters of unknown names are ignored.
    for (const query of [`mount[$ne]=1&from[$ne]=1`, 'digest[]=x', 'mount[__proto__]=x', '__proto__=x', '%00=x', '=']) {
      const answer = await fixture.send(`/v2/home/queries/blobs/uploads/?${query}`, { method: 'POST' });
      expect([query, answer.status]).toEqual([query, 202]);
      await fixture.send(String(answer.headers.location), { method: 'DELETE' });
    }
  });

  test('invalid page sizes are rejected, and the Link header echoes no line break', async () => {
    const body = JSON.stringify({ ...image, config: await fixture.blob('home/queries', '{}') });
    for (const tag of ['a', 'b']) {
      const path = `/v2/home/queries/manifests/${tag}`;
      expect(
        (await fixture.send(path, { method: 'PUT', headers: { 'content-type': image.mediaType }, body })).status,
      ).toBe(201);
    }
    const list = async (query: string) => await fixture.send(`/v2/home/queries/tags/list?${query}`);
    for (const n of ['-1', '1.5', 'abc', '0x10', '1e9', '%201', 'NaN', 'Infinity', 'null', '']) {
      const answer = await list(`n=${n}`);
      expect([n, answer.status, answer.code]).toEqual([n, 400, 'UNSUPPORTED']);
    }
    for (const n of ['9'.repeat(1_000), '1000000000', '9007199254740993'])
      expect((await list(`n=${n}`)).status).toBe(200);
    for (const last of [
      '%0d%0aset-cookie:%20x=y',
      '%00',
      '%ff',
      '%ed%a0%80',
      "'%20or%201=1--",
      '{"$gt":""}',
      'z'.repeat(9_000),
    ]) {
      const answer = await list(`n=1&last=${last}`);
      expect([last.slice(0, 20), answer.status, answer.headers['set-cookie']]).toEqual([
        last.slice(0, 20),
        200,
        undefined,
      ]);
    }
    const next = await fixture.raw('GET /v2/home/queries/tags/list?n=1&last=%0d%0aset-cookie:%20x=y HTTP/1.1');
    expect(next).toContain('link: </v2/home/queries/tags/list?n=1&last=a>; rel="next"');
    expect(next).not.toMatch(/^set-cookie/im);
  });

  test('the headers of a list of referrers echo no line break', async () => {
    const type = encodeURIComponent('a>; rel="next"\r\nset-cookie: x=y');
    const answer = await fixture.raw(`GET /v2/home/queries/referrers/${digest}?artifactType=${type} HTTP/1.1`);
    expect(statusAndCode(answer)).toEqual([200, undefined]);
    expect(answer).not.toMatch(/^set-cookie/im);
    for (const last of ['x', '..%2f', `${digest}%00`]) {
      expect((await fixture.send(`/v2/home/queries/referrers/${digest}?last=${last}`)).code).toBe('DIGEST_INVALID');
    }
  });

  test('invalid tags in the query of a manifest are rejected', async () => {
    const config = await fixture.blob('home/queries', '{}');
    const body = JSON.stringify({ ...image, config });
    for (const tag of ['%0d%0ax:%20y', 'a%2cb', '', '../x', '$ne']) {
      const path = `/v2/home/queries/manifests/${sha256(body)}?tag=${tag}`;
      const answer = await fixture.send(path, { method: 'PUT', headers: { 'content-type': image.mediaType }, body });
      expect([tag, answer.status, answer.code]).toEqual([tag, 400, 'MANIFEST_INVALID']);
    }
  });
}
