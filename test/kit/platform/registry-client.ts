/** A client of a platform's registry that pushes and pulls small images over plain HTTP, faster than an engine. */
import { randomBytes } from 'node:crypto';
import type { TestPlatform } from './platform.ts';
import { sha256 } from '../registry/digests.ts';

/** A blob or a manifest. */
export interface Content {
  readonly bytes: Buffer;
  readonly digest: string;
}

export interface PushedImage {
  /** `<account>/<service>`. */
  readonly repository: string;
  readonly tag: string;
  readonly config: Content;
  readonly layers: readonly Content[];
  readonly manifest: Content;
}

const imageType = 'application/vnd.oci.image.manifest.v1+json';

/** The registry rejected a request. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Statuses that a retry can resolve: content was collected meanwhile, or a process is down. */
const transient = [404, 503];

export class RegistryClient {
  readonly #url: string;
  readonly #account: string;
  readonly #authorization: string;

  constructor(platform: Pick<TestPlatform, 'registry' | 'account' | 'token'> & { readonly apiUrl?: string }) {
    // A platform speaks TLS on all its ports, or on none.
    const { protocol } = new URL(platform.apiUrl ?? 'http://registry');
    this.#url = `${protocol}//${platform.registry}`;
    this.#account = platform.account;
    this.#authorization = `Basic ${Buffer.from(`${platform.account}:${platform.token}`).toString('base64')}`;
  }

  /** Returns a new layer. */
  static layer(sizeBytes: number): Content {
    return contentOf(randomBytes(sizeBytes));
  }

  /** Returns an image of these layers, without pushing it. */
  image(service: string, tag: string, layers: readonly Content[]): PushedImage {
    const repository = `${this.#account}/${service}`;
    const config = contentOf(
      Buffer.from(JSON.stringify({ os: 'linux', architecture: 'amd64', of: `${repository}:${tag}` })),
    );
    const describe = (mediaType: string, { bytes, digest }: Content) => ({ mediaType, digest, size: bytes.length });
    const manifest = {
      schemaVersion: 2,
      mediaType: imageType,
      config: describe('application/vnd.oci.image.config.v1+json', config),
      layers: layers.map((layer) => describe('application/vnd.oci.image.layer.v1.tar', layer)),
    };
    return { repository, tag, config, layers, manifest: contentOf(Buffer.from(JSON.stringify(manifest))) };
  }

  /** Pushes as clients do: checks for each blob, mounts it from `mountFrom` if set, and pushes missing blobs. */
  async push(image: PushedImage, mountFrom?: string): Promise<void> {
    for (const blob of [...image.layers, image.config]) await this.#pushBlob(image.repository, blob, mountFrom);
    const { repository, tag, manifest } = image;
    const headers = { 'content-type': imageType };
    const path = `/v2/${repository}/manifests/${tag}`;
    expectOk(await this.#send(path, { method: 'PUT', headers, body: manifest.bytes }), path);
  }

  /** Pushes, and retries transient failures. */
  async pushWithRetries(image: PushedImage, mountFrom?: string): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await this.push(image, mountFrom);
        return;
      } catch (error) {
        if (!(error instanceof RegistryError && transient.includes(error.status)) || tries === 100) throw error;
      }
    }
  }

  /** Deletes the manifest, and every tag that points to it. */
  async delete({ repository, manifest }: PushedImage): Promise<void> {
    const path = `/v2/${repository}/manifests/${manifest.digest}`;
    expectOk(await this.#send(path, { method: 'DELETE' }), path);
  }

  /** Pulls a whole image by tag and compares its bytes. Returns a problem (`no such tag` if the tag is missing), or undefined. */
  async problemWith({ repository, tag, config, layers, manifest }: PushedImage): Promise<string | undefined> {
    const found = await this.#send(`/v2/${repository}/manifests/${tag}`);
    if (found.status === 404) return 'no such tag';
    if (found.status !== 200) return `the manifest returned ${found.status}`;
    if (!Buffer.from(await found.arrayBuffer()).equals(manifest.bytes)) return 'the tag points to another manifest';
    for (const { digest, bytes } of [config, ...layers]) {
      const blob = await this.#send(`/v2/${repository}/blobs/${digest}`);
      if (blob.status !== 200) return `${repository}:${tag} lacks ${digest}: ${blob.status}`;
      if (!Buffer.from(await blob.arrayBuffer()).equals(bytes))
        return `${repository}:${tag} has other bytes for ${digest}`;
    }
    return undefined;
  }

  /** The problems of all these images. */
  async problemsWith(images: readonly PushedImage[]): Promise<string[]> {
    const problems = await Promise.all(images.map(async (image) => await this.problemWith(image)));
    return problems.filter((problem) => problem !== undefined);
  }

  /** The number of these blobs that a service has. */
  async count(blobs: readonly Content[], service: string): Promise<number> {
    const paths = blobs.map(({ digest }) => `/v2/${this.#account}/${service}/blobs/${digest}`);
    const answers = await Promise.all(paths.map(async (path) => await this.#send(path)));
    await Promise.all(answers.map(async (answer) => await answer.arrayBuffer()));
    return answers.filter(({ status }) => status === 200).length;
  }

  async #pushBlob(repository: string, { bytes, digest }: Content, mountFrom: string | undefined): Promise<void> {
    const head = await this.#send(`/v2/${repository}/blobs/${digest}`, { method: 'HEAD' });
    if (head.status === 200) return;
    const uploads = `/v2/${repository}/blobs/uploads/`;
    let begun: Response | undefined;
    if (mountFrom !== undefined) {
      begun = expectOk(await this.#send(`${uploads}?mount=${digest}&from=${mountFrom}`, { method: 'POST' }), uploads);
      if (begun.status === 201) return;
    }
    // Uses both protocols: some clients push in one request, others start an upload.
    if (!begun && bytes.length % 2 === 0) {
      expectOk(await this.#send(`${uploads}?digest=${digest}`, { method: 'POST', body: bytes }), uploads);
      return;
    }
    begun ??= expectOk(await this.#send(uploads, { method: 'POST' }), uploads);
    const location = begun.headers.get('location') ?? '';
    expectOk(await this.#send(location, { method: 'PATCH', body: bytes }), location);
    expectOk(await this.#send(`${location}?digest=${digest}`, { method: 'PUT' }), location);
  }

  async #send(path: string, { body, ...init }: Omit<RequestInit, 'body'> & { body?: Buffer } = {}): Promise<Response> {
    const headers = { authorization: this.#authorization, ...(init.headers as Record<string, string> | undefined) };
    const answer = await fetch(`${this.#url}${path}`, {
      ...init,
      headers,
      ...(body && { body: new Uint8Array(body) }),
    });
    return answer;
  }
}

/** Content with its digest. */
export function contentOf(bytes: Buffer): Content {
  return { bytes, digest: sha256(bytes) };
}

function expectOk(answer: Response, path: string): Response {
  if (answer.ok) return answer;
  throw new RegistryError(answer.status, `${path} returned ${answer.status}`);
}
