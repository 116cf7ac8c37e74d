import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { imageSize } from './image-size.ts';

const digest = `sha256:${'a'.repeat(64)}`;

afterEach(() => void vi.restoreAllMocks());

/** A registry for plain HTTP with one image, and what its clients have sent. */
async function openRegistry(host: string) {
  const requests: { path: string; authorization: string | undefined }[] = [];
  const server = createServer(({ url: path = '', headers: { authorization } }, response) => {
    requests.push({ path, authorization });
    const challenge = `Bearer realm="http://${address}/token",service="berth"`;
    if (path === '/v2/') response.writeHead(401, { 'www-authenticate': challenge }).end();
    else if (path.startsWith('/token')) response.end(JSON.stringify({ token: 'grant' }));
    else response.end(JSON.stringify({ config: { digest: 'one', size: 3 }, layers: [{ digest: 'two', size: 4 }] }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const address = `${host}:${port}`;
  // Not every machine resolves names such as registry.localhost.
  const send = globalThis.fetch;
  vi.spyOn(globalThis, 'fetch').mockImplementation(
    async (input, init) => await send((input as string).replace(`//${host}:`, '//127.0.0.1:'), init),
  );
  return { address, requests, [Symbol.asyncDispose]: async () => await server[Symbol.asyncDispose]() };
}

test.each(['localhost', 'registry.localhost', '127.0.0.1'])(
  'a registry at %s is read without encryption, as docker does',
  async (host) => {
    await using registry = await openRegistry(host);
    const repository = `${registry.address}/acme/draw`;
    const access = { token: 'acme.secret', host: 'https://berth.example' };
    const { signal } = new AbortController();
    expect(await imageSize({ repository, digest }, { ...access, signal })).toBe(7);
    expect(registry.requests).toEqual([
      { path: '/v2/', authorization: undefined },
      {
        path: '/token?service=berth&scope=repository%3Aacme%2Fdraw%3Apull',
        authorization: `Basic ${Buffer.from('acme:acme.secret').toString('base64')}`,
      },
      { path: `/v2/acme/draw/manifests/${digest}`, authorization: 'Bearer grant' },
    ]);
  },
);
