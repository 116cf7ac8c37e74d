/** The size of an image in the registry. */

interface Access {
  readonly account: string;
  readonly token: string;
  /** The address of the API. */
  readonly host: string;
  readonly signal: AbortSignal;
}

interface Descriptor {
  readonly digest: string;
  readonly size: number;
}

interface Manifest {
  readonly config?: Descriptor;
  readonly layers?: readonly Descriptor[];
  readonly manifests?: readonly Descriptor[];
}

const loopback = /^(?:localhost|[\w.-]+\.localhost|127(?:\.\d+){3}|\[::1\])$/;

const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

/** Short, because the summary is complete without the size. */
const timeoutMs = 10_000;

/** The size of an image in bytes, of all its platforms together. Undefined if the token may not read the image. */
export async function imageSize(
  { repository, digest }: { readonly repository: string; readonly digest: string },
  access: Access,
): Promise<number | undefined> {
  const [registry = '', ...path] = repository.split('/');
  const signal = AbortSignal.any([access.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const url = `${scheme(registry, access.host)}//${registry}`;
    const grant = await pullGrant(url, path.join('/'), { ...access, signal });
    const read = async (reference: string): Promise<Manifest> => {
      const headers = { authorization: `Bearer ${grant}`, accept: manifestTypes };
      const response = await fetch(`${url}/v2/${path.join('/')}/manifests/${reference}`, { headers, signal });
      if (!response.ok) throw new Error(`HTTP status ${response.status}`);
      return (await response.json()) as Manifest;
    };
    const top = await read(digest);
    const manifests = top.manifests
      ? await Promise.all(top.manifests.map(async (each) => await read(each.digest)))
      : [top];
    const blobs = manifests.flatMap(({ config, layers = [] }) => [...(config ? [config] : []), ...layers]);
    return [...new Map(blobs.map((blob) => [blob.digest, blob.size])).values()].reduce((sum, size) => sum + size, 0);
  } catch {
    access.signal.throwIfAborted();
    return undefined;
  }
}

/** Requests a grant to pull (the token specification of distribution). */
async function pullGrant(url: string, name: string, { account, token, signal }: Access): Promise<string> {
  const challenge = (await fetch(`${url}/v2/`, { signal })).headers.get('www-authenticate') ?? '';
  const [, realm = '', service = ''] = /realm="([^"]+)",service="([^"]+)"/.exec(challenge) ?? [];
  // The access token is sent only to the registry itself.
  if (realm === '' || new URL(realm).origin !== new URL(url).origin) throw new Error('No challenge of Berth');
  const query = new URLSearchParams({ service, scope: `repository:${name}:pull` });
  const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
  const response = await fetch(`${realm}?${query.toString()}`, { headers: { authorization }, signal });
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  return ((await response.json()) as { token: string }).token;
}

/** Plain HTTP for this machine, as docker does, and for the host of an API without encryption; otherwise HTTPS. */
function scheme(registry: string, host: string): 'http:' | 'https:' {
  const { hostname } = new URL(`http://${registry}`);
  const api = new URL(host);
  return loopback.test(hostname) || (api.hostname === hostname && api.protocol === 'http:') ? 'http:' : 'https:';
}
