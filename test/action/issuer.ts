/** An issuer of ID tokens like GitHub: it publishes its keys, and issues a token to a job for the requested audience. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';
import { makeCertificate } from '../kit/machine/certificate.ts';

export interface Issuer extends AsyncDisposable {
  readonly url: string;
  /** The file with the authority that signed its certificate. */
  readonly authority: string;
  /** The variables by which a job with these claims requests its ID token. */
  readonly jobOf: (claims: Readonly<Record<string, string>>) => Readonly<Record<string, string>>;
}

const requestSecret = 'secret-of-the-job';

export async function openIssuer(folder: string): Promise<Issuer> {
  await makeCertificate(folder);
  const authority = join(folder, 'ca.pem');
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'key-1', alg: 'RS256' };
  const sign = async (claims: object, audience: string) =>
    await new SignJWT({ jti: randomUUID(), ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'key-1' })
      .setIssuer(url)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey);
  const answer = async (path: URL, authorization: string | undefined): Promise<object> => {
    if (path.pathname === '/.well-known/openid-configuration') return { issuer: url, jwks_uri: `${url}/keys` };
    if (path.pathname === '/keys') return { keys: [jwk] };
    if (authorization !== `Bearer ${requestSecret}`) return { message: 'no such job' };
    const claims = JSON.parse(path.searchParams.get('claims') ?? '') as object;
    return { value: await sign(claims, path.searchParams.get('audience') ?? '') };
  };
  const keys = { key: await readFile(join(folder, 'server.key')), cert: await readFile(join(folder, 'server.pem')) };
  const server = createServer(keys, (request, response) => {
    void answer(new URL(request.url ?? '', url), request.headers.authorization).then((body) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body)),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    authority,
    jobOf: (claims) => ({
      ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/token?claims=${encodeURIComponent(JSON.stringify(claims))}`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: requestSecret,
      NODE_EXTRA_CA_CERTS: authority,
    }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
