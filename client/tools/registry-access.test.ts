import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { digestOfTag } from './registry-access.ts';

const digest = `sha256:${'a'.repeat(64)}`;

/** A registry that answers requests for a tag with one answer after the other. */
async function openRegistry(...answers: ((response: ServerResponse) => void)[]) {
  const server = createServer(({ url: path = '' }, response) => {
    const challenge = `Bearer realm="${url}/token",service="berth"`;
    if (path === '/v2/') response.writeHead(401, { 'www-authenticate': challenge }).end();
    else if (path.startsWith('/token')) response.end(JSON.stringify({ token: 'grant' }));
    else answers.shift()?.(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { signal } = new AbortController();
  const at = { url, name: 'acme/draw', token: 'acme.secret', send: fetch, signal };
  return { at, answers, [Symbol.asyncDispose]: async () => await server[Symbol.asyncDispose]() };
}

const found = (response: ServerResponse) => response.setHeader('docker-content-digest', digest).end();

const refused = (status: number, headers: Readonly<Record<string, string>> = {}) => {
  return (response: ServerResponse) => response.writeHead(status, headers).end();
};

test('the digest of a tag, and none if the registry does not have the tag', async () => {
  await using registry = await openRegistry(found, refused(404));
  expect([await digestOfTag('v1', registry.at), await digestOfTag('v1', registry.at)]).toEqual([digest, undefined]);
});

test('a registry that is busy for a moment is asked again', async () => {
  await using registry = await openRegistry(refused(503, { 'retry-after': '0' }), refused(429), found);
  expect(await digestOfTag('v1', registry.at)).toBe(digest);
});

test.each([
  [refused(500), 500],
  [refused(401), 401],
  [refused(429, { 'retry-after': '3600' }), 429],
])('another answer is an error and not a missing tag', async (answer, status) => {
  await using registry = await openRegistry(answer);
  await expect(digestOfTag('v1', registry.at)).rejects.toMatchObject({
    name: 'BerthError',
    status,
    message: expect.stringContaining(`The registry answers ${status}`),
  });
  expect(registry.answers).toEqual([]);
});

test('a server that is not the registry is an error, too', async () => {
  const server = createServer((_request, response) => response.end('<html>'));
  await using _closed = server;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { signal } = new AbortController();
  const at = { url, name: 'acme/draw', token: 'acme.secret', send: fetch, signal };
  await expect(digestOfTag('v1', at)).rejects.toMatchObject({ code: 'UnexpectedResponse' });
});
