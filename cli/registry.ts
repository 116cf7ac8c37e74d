/** Requests to the registry, for operations without an endpoint in the service API. */
import { BerthError } from '../client/index.ts';
import { digestOfTag, registryUrl, requestGrant } from '../client/tools/registry-access.ts';
import { CliError, exitCodes } from './errors.ts';
import type { Session } from './session.ts';

/** A request may wait for the registry's store. */
const timeoutMs = 30_000;

interface Repository {
  /** The address of the registry. */
  readonly url: string;
  /** `<account>/<service>`. */
  readonly name: string;
}

/** Deletes an image with all its tags. */
export async function deleteImage(session: Session, service: string, digest: string): Promise<void> {
  const repository = await repositoryOf(session, service);
  const headers = { authorization: `Bearer ${await grant(session, repository, 'delete')}` };
  const response = await send(session, `${repository.url}/v2/${repository.name}/manifests/${digest}`, {
    method: 'DELETE',
    headers,
  });
  if (response.ok) return;
  throw await registryError(response);
}

/** The digest of the image with a tag, after a push. */
export async function digestOf(session: Session, service: string, tag: string): Promise<string> {
  const { token } = await session.login();
  const repository = await repositoryOf(session, service);
  const digest = await digestOfTag(tag, { ...repository, token, send: (url, init) => send(session, url, init) });
  if (digest !== undefined) return digest;
  throw new CliError('PushFailed', `The registry at ${repository.url} does not have ${service}:${tag} after the push`);
}

/** Checks whether the registry accepts the log-in, for the first service of the account. Returns a description of the result. */
export async function checkRegistry(session: Session): Promise<string> {
  const client = await session.client();
  const account = await session.account();
  for await (const name of client.services(account, { pageSize: 1, signal: session.signal })) {
    const repository = await repositoryOf(session, `${account}/${name}`);
    await grant(session, repository, 'pull');
    return repository.url;
  }
  return 'not checked, the account has no service yet';
}

async function repositoryOf(session: Session, service: string): Promise<Repository> {
  const client = await session.client();
  const imageName = await client.imageName(service, { signal: session.signal });
  const registry = imageName.slice(0, imageName.indexOf('/'));
  return { url: registryUrl(registry, await session.host()), name: service };
}

/** Requests a grant of the registry for one action. */
async function grant(session: Session, repository: Repository, action: 'pull' | 'delete'): Promise<string> {
  const { token } = await session.login();
  const response = await requestGrant({ ...repository, action, token, send: (url, init) => send(session, url, init) });
  if (!response) throw new CliError('UnexpectedResponse', `${repository.url} does not answer as Berth's registry`);
  if (!response.ok) throw await registryError(response);
  return ((await response.json()) as { token: string }).token;
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

async function registryError(response: Response): Promise<CliError> {
  const { status } = response;
  const body = (await response.json().catch(() => ({}))) as { errors?: readonly { code?: string; message?: string }[] };
  const [first] = body.errors ?? [];
  const exitCode =
    status === 401 || status === 403 ? exitCodes.authentication : status === 404 ? exitCodes.notFound : exitCodes.error;
  return new CliError(
    first?.code ?? 'RegistryError',
    `The registry answers ${status}: ${first?.message ?? 'no message'}`,
    { exitCode },
  );
}
