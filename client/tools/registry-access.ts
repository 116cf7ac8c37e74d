/** Access to the registry, for the command line and the action. It is not part of the client's npm package. */

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

export interface GrantRequest {
  /** The URL of the registry. */
  readonly url: string;
  /** `<account>/<service>`. */
  readonly name: string;
  /** Of several actions, the registry grants those that the token may do. */
  readonly action: 'pull' | 'delete' | 'pull,push';
  /** An access token. */
  readonly token: string;
  readonly send: (url: string, init: RequestInit) => Promise<Response>;
}

/** Requests a grant (the token specification of distribution). Returns the answer, or `undefined` if the server is not Berth's registry. */
export async function requestGrant({ url, name, action, token, send }: GrantRequest): Promise<Response | undefined> {
  const challenge = (await send(`${url}/v2/`, {})).headers.get('www-authenticate') ?? '';
  const [, realm = '', service = ''] = /realm="([^"]+)",service="([^"]+)"/.exec(challenge) ?? [];
  // The access token is sent only to the registry itself.
  if (realm === '' || new URL(realm).origin !== new URL(url).origin) return undefined;
  const [account = ''] = name.split('/');
  const query = new URLSearchParams({ service, scope: `repository:${name}:${action}` });
  const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
  return await send(`${realm}?${query.toString()}`, { headers: { authorization } });
}

export const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

/**
 * The digest of the image with a tag. `undefined` if there is none, or if the token may neither push nor pull it. After a push, only the
 * registry knows the digest: an engine may report digests of earlier pushes and pulls, and that of an index of which it pushed a part.
 */
export async function digestOfTag(tag: string, at: Omit<GrantRequest, 'action'>): Promise<string | undefined> {
  const granted = await requestGrant({ ...at, action: 'pull,push' });
  if (!granted?.ok) return undefined;
  const { token } = (await granted.json()) as { token: string };
  const headers = { authorization: `Bearer ${token}`, accept: manifestTypes };
  const answer = await at.send(`${at.url}/v2/${at.name}/manifests/${tag}`, { method: 'HEAD', headers });
  return answer.ok ? (answer.headers.get('docker-content-digest') ?? undefined) : undefined;
}
