/** The size of an image in the registry. */
import { manifestTypes, registryUrl, requestGrant } from '../../client/tools/registry-access.ts';

interface Access {
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

/** Short, because the summary is complete without the size. */
const timeoutMs = 10_000;

/** The size of an image in bytes, of all its platforms together. Undefined if the token may not read the image. */
export async function imageSize(
  { repository, digest }: { readonly repository: string; readonly digest: string },
  access: Access,
): Promise<number | undefined> {
  const [registry = '', ...path] = repository.split('/');
  const signal = AbortSignal.any([access.signal, AbortSignal.timeout(timeoutMs)]);
  const send = async (url: string, init: RequestInit) => await fetch(url, { ...init, signal });
  try {
    const [url, name] = [registryUrl(registry, access.host), path.join('/')];
    const grant = await requestGrant('pull', { url, name, token: access.token, send, signal });
    const read = async (reference: string): Promise<Manifest> => {
      const headers = { authorization: `Bearer ${grant}`, accept: manifestTypes };
      const response = await send(`${url}/v2/${name}/manifests/${reference}`, { headers });
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
