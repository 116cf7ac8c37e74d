/** Pushes a small image over plain HTTP, without a Docker Engine. */
import { createHash, randomBytes } from 'node:crypto';
import type { TestPlatform } from '../test/kit/platform/platform.ts';

/** A repository's URL, and the client's credentials. */
interface Repository {
  readonly url: string;
  readonly authorization: string;
}

/** The repository of a service, with the platform's access token. */
export function repositoryOf(platform: TestPlatform, service: string): Repository {
  const authorization = `Basic ${Buffer.from(`${platform.account}:${platform.token}`).toString('base64')}`;
  return { url: `http://${platform.registry}/v2/${platform.account}/${service}`, authorization };
}

/** Pushes a blob by POST and PUT, and returns its digest. */
async function pushBlob({ url, authorization }: Repository, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const begun = await expectOk(await fetch(`${url}/blobs/uploads/`, { method: 'POST', headers: { authorization } }));
  const location = new URL(begun.headers.get('location') ?? '', url);
  location.searchParams.set('digest', digest);
  await expectOk(await fetch(location, { method: 'PUT', headers: { authorization }, body: bytes }));
  return digest;
}

/** Pushes a small image that cannot run, as `latest`. */
export async function pushEmptyImage(repository: Repository): Promise<void> {
  const config = Buffer.from(
    JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [] } }),
  );
  const layer = randomBytes(64);
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = {
    schemaVersion: 2,
    mediaType: type,
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: await pushBlob(repository, config),
      size: config.length,
    },
    layers: [
      {
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        digest: await pushBlob(repository, layer),
        size: layer.length,
      },
    ],
  };
  const headers = { authorization: repository.authorization, 'content-type': type };
  const url = `${repository.url}/manifests/latest`;
  await expectOk(await fetch(url, { method: 'PUT', headers, body: JSON.stringify(manifest) }));
}

async function expectOk(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  throw new Error(`${answer.status} from ${answer.url}: ${await answer.text()}`);
}
