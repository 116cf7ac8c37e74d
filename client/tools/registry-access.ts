/** Access to the registry, for the command line and the action. It is not part of the client's npm package. */
import { BerthError, retryAfter } from '../errors.ts';
import { wait } from '../time.ts';

const loopback = /^(?:localhost|[\w.-]+\.localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Whether the host name or address of a URL is this machine. */
export function isLoopback(hostname: string): boolean {
  return loopback.test(hostname);
}

/** The URL of a registry: plain HTTP on this machine, as docker does, and on the host of an API without encryption; otherwise HTTPS. */
export function registryUrl(registry: string, apiUrl: string): string {
  const { hostname } = new URL(`http://${registry}`);
  const api = new URL(apiUrl);
  const isPlain = isLoopback(hostname) || (api.hostname === hostname && api.protocol === 'http:');
  return `${isPlain ? 'http' : 'https'}://${registry}`;
}

export interface RegistryRequest {
  /** The URL of the registry. */
  readonly url: string;
  /** `<account>/<service>`. */
  readonly name: string;
  /** An access token. */
  readonly token: string;
  readonly send: (url: string, init: RequestInit) => Promise<Response>;
  /** Ends waits between attempts. */
  readonly signal: AbortSignal;
}

/** Of several actions, the registry grants those that the token may do. */
export type GrantedAction = 'pull' | 'delete' | 'pull,push';

/** Requests a grant (the token specification of distribution). Throws a `BerthError` if the server refuses, or is not Berth's registry. */
export async function requestGrant(action: GrantedAction, at: RegistryRequest): Promise<string> {
  const { url, name, token } = at;
  const challenged = await sendWithRetries(at, `${url}/v2/`);
  const challenge = challenged.headers.get('www-authenticate') ?? '';
  const [, realm = '', service = ''] = /realm="([^"]+)",service="([^"]+)"/.exec(challenge) ?? [];
  // The access token is sent only to the registry itself.
  if (realm === '' || new URL(realm).origin !== new URL(url).origin) {
    if (challenged.status >= 429) throw await registryError(challenged);
    throw new BerthError('UnexpectedResponse', `${url} does not answer as Berth's registry`);
  }
  const [account = ''] = name.split('/');
  const query = new URLSearchParams({ service, scope: `repository:${name}:${action}` });
  const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
  const granted = await sendWithRetries(at, `${realm}?${query.toString()}`, { headers: { authorization } });
  if (!granted.ok) throw await registryError(granted);
  return ((await granted.json()) as { token: string }).token;
}

export const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

/**
 * The digest of the image with a tag; `undefined` if there is none. After a push, only the registry knows the digest: an engine may report
 * digests of earlier pushes and pulls, and that of an index of which it pushed a part.
 */
export async function digestOfTag(tag: string, at: RegistryRequest): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${await requestGrant('pull,push', at)}`, accept: manifestTypes };
  const answer = await sendWithRetries(at, `${at.url}/v2/${at.name}/manifests/${tag}`, { method: 'HEAD', headers });
  if (answer.status === 404) return undefined;
  if (!answer.ok) throw await registryError(answer);
  return answer.headers.get('docker-content-digest') ?? undefined;
}

/** The error that an answer of the registry reports. */
export async function registryError(answer: Response): Promise<BerthError> {
  const { status, headers } = answer;
  const body = (await answer.json().catch(() => ({}))) as { errors?: readonly { code?: string; message?: string }[] };
  const [first] = body.errors ?? [];
  const message = `The registry answers ${status}: ${first?.message ?? 'no message'}`;
  const retryAfterMs = retryAfter(headers.get('retry-after'));
  return new BerthError(first?.code ?? 'RegistryError', message, { status, retryAfterMs });
}

/** Enough for a registry that restarts, or a limit of requests per second. */
const attempts = 4;

const firstDelayMs = 250;

/** If the registry asks for a longer wait, the caller gets the answer. */
const longestDelayMs = 30_000;

/** Sends a request, and again if the registry answers that it is busy. */
async function sendWithRetries(at: RegistryRequest, url: string, init: RequestInit = {}): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await at.send(url, init);
    const isBusy = answer.status === 429 || answer.status === 503;
    const delayMs = Math.max(firstDelayMs * 2 ** (attempt - 1), retryAfter(answer.headers.get('retry-after')) ?? 0);
    if (!isBusy || attempt === attempts || delayMs > longestDelayMs) return answer;
    await answer.body?.cancel();
    await wait(delayMs, at.signal);
  }
}
