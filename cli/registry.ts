/** Requests to the registry, for operations without an endpoint in the service API. */
import { BerthError } from '../client/index.ts';
import { digestOfTag, registryError, registryUrl, requestGrant } from '../client/tools/registry-access.ts';
import type { RegistryRequest } from '../client/tools/registry-access.ts';
import { CliError } from './errors.ts';
import type { Session } from './session.ts';

/** A request may wait for the registry's store. */
const timeoutMs = 30_000;

/** Deletes an image with all its tags. */
export async function deleteImage(session: Session, service: string, digest: string): Promise<void> {
  const at = await repositoryOf(session, service);
  const headers = { authorization: `Bearer ${await requestGrant('delete', at)}` };
  const response = await at.send(`${at.url}/v2/${service}/manifests/${digest}`, { method: 'DELETE', headers });
  if (response.ok) return;
  throw await registryError(response);
}

/** The digest of the image with a tag, after a push. */
export async function digestOf(session: Session, service: string, tag: string): Promise<string> {
  const at = await repositoryOf(session, service);
  const digest = await digestOfTag(tag, at);
  if (digest !== undefined) return digest;
  throw new CliError('PushFailed', `The registry at ${at.url} does not have ${service}:${tag} after the push`);
}

/** Checks whether the registry accepts the log-in, for the first service of the account. Returns a description of the result. */
export async function checkRegistry(session: Session): Promise<string> {
  const client = await session.client();
  const account = await session.account();
  for await (const name of client.services(account, { pageSize: 1, signal: session.signal })) {
    const at = await repositoryOf(session, `${account}/${name}`);
    await requestGrant('pull', at);
    return at.url;
  }
  return 'not checked, the account has no service yet';
}

async function repositoryOf(session: Session, service: string): Promise<RegistryRequest> {
  const { token } = await session.login();
  const client = await session.client();
  const imageName = await client.imageName(service, { signal: session.signal });
  const registry = imageName.slice(0, imageName.indexOf('/'));
  const url = registryUrl(registry, await session.host());
  return { url, name: service, token, send: (to, init) => send(session, to, init), signal: session.signal };
}

async function send({ signal }: Session, url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, {
      ...init,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new BerthError('Unreachable', `No response from the registry at ${new URL(url).host}`, { cause: error });
  }
}
