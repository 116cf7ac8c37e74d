import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UnsecuredJWT } from 'jose';
import { expect, test } from 'vitest';
import { IdTokens } from './id-tokens.ts';

test('each of several concurrent callers gets `Unavailable` while the issuer fails, and the next call asks it again', async () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.writeHead(503).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  await using _server = { [Symbol.asyncDispose]: async () => void server.close() };
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const idTokens = new IdTokens([issuer], 'https://api.example');
  const verify = async () => await idTokens.verify(new UnsecuredJWT({ iss: issuer }).encode(), new Date());
  const calls = [verify(), verify(), verify()].map((call) => call.catch((error: unknown) => error));
  const unavailable = expect.objectContaining({ code: 'Unavailable' });
  expect(await Promise.all(calls)).toEqual([unavailable, unavailable, unavailable]);
  expect(requests).toBe(1);
  await expect(verify()).rejects.toMatchObject({ code: 'Unavailable' });
  expect(requests).toBe(2);
});

test('a key server that fails is reported as unavailable, not as a wrong signature', async () => {
  const server = createServer(({ url }, response) => {
    if (url === '/keys') response.writeHead(502).end('<h1>Bad gateway</h1>');
    else response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  await using _server = { [Symbol.asyncDispose]: async () => void server.close() };
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const idTokens = new IdTokens([issuer], 'https://api.example');
  const [header, payload] = [{ alg: 'RS256' }, { iss: issuer }].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  await expect(idTokens.verify(`${header}.${payload}.c2ln`, new Date())).rejects.toMatchObject({ code: 'Unavailable' });
});
