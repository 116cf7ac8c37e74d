/** At every endpoint, a repository that a client may not read is indistinguishable from a repository that does not exist. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testDrivers } from '../kit/servers/drivers.ts';
import { openTestRegistry, pushBlob, pushImage, sha256 } from '../kit/registry/registry.ts';
import type { Answer, TestRegistry } from '../kit/registry/registry.ts';

const names = testDrivers().map((drivers) => ({
  drivers,
  name: drivers === 'embedded' ? 'one process' : 'two processes',
}));

describe.each(names)('In $name', ({ drivers }) => {
  let registry: TestRegistry;
  let secret: string;
  let manifest: string;
  /** The credentials of callers without access to `acme`. */
  let callers: Record<string, string | undefined>;

  beforeAll(async () => {
    registry = await openTestRegistry({ drivers });
    secret = (await pushBlob(registry, 'acme/here', 'a secret layer')).digest;
    manifest = (await pushImage(registry, { repository: 'acme/here', reference: 'latest' })).digest;
    const access = [{ type: 'repository' as const, name: 'other/mine', actions: ['pull' as const, 'push' as const] }];
    const issue = async (subject: string, allowed: typeof access) =>
      `Bearer ${await registry.grants.issue({ subject, access: allowed }, 60, new Date())}`;
    callers = {
      'with a login': registry.basic('other', await registry.addToken('other', ['read', 'push'])),
      'with a grant for its own repository': await issue('other', access),
      'with a grant for nothing': await issue('', []),
      'without credentials': undefined,
    };
  });
  afterAll(async () => await registry[Symbol.asyncDispose]());

  const send = async (
    method: string,
    path: string,
    authorization: string | undefined,
    body?: string,
  ): Promise<Answer> =>
    await registry.send(path, {
      method,
      // The same Host for both processes, because the challenge repeats it.
      headers: {
        host: 'registry.example',
        ...(authorization && { authorization }),
        ...(body === undefined && { 'content-length': 0 }),
      },
      ...(body !== undefined && { body }),
    });

  /** The response as a client sees it, with the repository's name replaced. */
  const seen = ({ status, headers, body }: Answer, name: string) => {
    const { date: _date, 'x-request-id': _id, ...rest } = headers;
    return JSON.stringify({ status, rest, body: body.toString() }).replaceAll(name, 'acme/some');
  };

  const endpoints: [string, (name: string) => string][] = [
    ['GET', (name) => `/v2/${name}/blobs/${secret}`],
    ['HEAD', (name) => `/v2/${name}/blobs/${secret}`],
    ['DELETE', (name) => `/v2/${name}/blobs/${secret}`],
    ['GET', (name) => `/v2/${name}/manifests/latest`],
    ['GET', (name) => `/v2/${name}/manifests/${manifest}`],
    ['HEAD', (name) => `/v2/${name}/manifests/${manifest}`],
    ['PUT', (name) => `/v2/${name}/manifests/latest`],
    ['DELETE', (name) => `/v2/${name}/manifests/${manifest}`],
    ['GET', (name) => `/v2/${name}/tags/list`],
    ['GET', (name) => `/v2/${name}/tags/list?n=0`],
    ['GET', (name) => `/v2/${name}/referrers/${manifest}`],
    ['POST', (name) => `/v2/${name}/blobs/uploads/`],
    ['POST', (name) => `/v2/${name}/blobs/uploads/?mount=${secret}&from=${name}`],
    ['POST', (name) => `/v2/${name}/blobs/uploads/?digest=${secret}`],
    ['GET', (name) => `/v2/${name}/blobs/uploads/00000000-0000-4000-8000-000000000000`],
  ];

  test('every endpoint returns the same bytes and headers for a hidden and an absent repository', async () => {
    for (const [caller, authorization] of Object.entries(callers)) {
      for (const [method, path] of endpoints) {
        const [hidden, absent] = await Promise.all(
          ['acme/here', 'acme/none'].map(async (name) => seen(await send(method, path(name), authorization), name)),
        );
        expect([caller, method, hidden]).toEqual([caller, method, absent]);
        expect(JSON.parse(hidden ?? '')).toMatchObject({ status: caller === 'with a login' ? 403 : 401 });
      }
    }
  });

  test('a mount without read access starts an upload, like a mount of a missing blob', async () => {
    for (const caller of ['with a login', 'with a grant for its own repository']) {
      const answers: string[] = [];
      for (const query of [
        `mount=${secret}&from=acme/here`,
        `mount=${secret}`,
        `mount=${secret}&from=acme/none`,
        `mount=${sha256('nowhere')}&from=acme/here`,
        `mount=${sha256('nowhere')}`,
      ]) {
        const answer = await send('POST', `/v2/other/mine/blobs/uploads/?${query}`, callers[caller]);
        const id = String(answer.headers['docker-upload-uuid']);
        answers.push(seen(answer, 'acme/here').replaceAll(id, 'id'));
        expect((await send('DELETE', String(answer.headers.location), callers[caller])).status).toBe(204);
      }
      expect(new Set(answers).size).toBe(1);
      expect(answers[0]).toContain('"status":202');
      expect((await send('HEAD', `/v2/other/mine/blobs/${secret}`, callers[caller])).status).toBe(404);
    }
  });

  test('a manifest that refers to content of another account is rejected', async () => {
    const config = { mediaType: 'application/vnd.oci.image.config.v1+json', digest: secret, size: 14 };
    const image = JSON.stringify({ schemaVersion: 2, config, layers: [] });
    const answer = await registry.send('/v2/other/mine/manifests/v1', {
      method: 'PUT',
      headers: {
        authorization: callers['with a login'],
        'content-type': 'application/vnd.oci.image.manifest.v1+json',
      },
      body: image,
    });
    expect([answer.status, answer.code]).toEqual([404, 'MANIFEST_BLOB_UNKNOWN']);
  });

  test('a push or a deletion of the same bytes affects its own repository only', async () => {
    const authorization = callers['with a login'];
    const path = `/v2/other/mine/blobs/uploads/?digest=${secret}`;
    expect((await send('POST', path, authorization, 'a secret layer')).status).toBe(201);
    const rights = await registry.addToken('other', ['read', 'push']);
    const deleted = await send('DELETE', `/v2/other/mine/blobs/${secret}`, registry.basic('other', rights));
    expect(deleted.status).toBe(202);
    expect((await send('GET', `/v2/other/mine/blobs/${secret}`, authorization)).status).toBe(404);
    expect((await registry.as(`/v2/acme/here/blobs/${secret}`)).body.toString()).toBe('a secret layer');
  });

  test('a grant for a name does not cover names that begin or end with it', async () => {
    const access = [{ type: 'repository' as const, name: 'acme/here', actions: ['pull' as const] }];
    const grant = `Bearer ${await registry.grants.issue({ subject: 'acme', access }, 60, new Date())}`;
    expect((await send('GET', '/v2/acme/here/tags/list', grant)).status).toBe(200);
    for (const name of [
      'acme/here2',
      'acme/her',
      'acme/here.x',
      'acme/here-x',
      'xacme/here',
      'here/acme',
      'acme2/here',
    ]) {
      expect([name, (await send('GET', `/v2/${name}/tags/list`, grant)).status]).toEqual([name, 401]);
    }
    // Names have exactly two parts, `<account>/<service>`.
    expect((await send('GET', '/v2/acme/here/deeper/tags/list', grant)).status).toBe(404);
  });
});
