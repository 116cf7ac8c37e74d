/** Runs the cases of the OCI distribution specification against a registry, over a socket, on all drivers of the run. */
import { afterAll, beforeAll, describe } from 'vitest';
import { testDrivers } from '../kit/servers/drivers.ts';
import type { TestDrivers } from '../kit/servers/drivers.ts';
import { openTestRegistry, sha256 } from '../kit/registry/registry.ts';
import type { Answer, Sent, TestRegistry } from '../kit/registry/registry.ts';

export const types = {
  image: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  dockerImage: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerList: 'application/vnd.docker.distribution.manifest.list.v2+json',
  octets: 'application/octet-stream',
} as const;

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly [more: string]: unknown;
}

/** A manifest to push. */
export interface Document {
  readonly mediaType?: string;
  readonly [field: string]: unknown;
}

/** Declares cases for all drivers. On the shared drivers there are two registries, which receive requests alternately. */
export function onAllRegistries(declare: (fixture: Fixture) => void): void {
  for (const drivers of testDrivers()) {
    const name =
      drivers === 'embedded' ? 'one registry, SQLite and files' : 'two registries alternately, MongoDB and GridFS';
    describe(`On ${name}`, () => {
      const fixture = new Fixture();
      beforeAll(async () => await fixture.open(drivers));
      afterAll(async () => await fixture.close());
      declare(fixture);
    });
  }
}

/** A registry in which every case has its own repositories. */
export class Fixture {
  #registry: TestRegistry | undefined;
  #repositories = 0;

  async open(drivers: TestDrivers): Promise<void> {
    this.#registry = await openTestRegistry({ drivers });
  }

  async close(): Promise<void> {
    await this.#registry?.[Symbol.asyncDispose]();
  }

  get registry(): TestRegistry {
    if (!this.#registry) throw new Error('The fixture is not open');
    return this.#registry;
  }

  /** An empty repository. */
  repository(): Repository {
    this.#repositories += 1;
    return new Repository(this.registry, `acme/case-${this.#repositories}`);
  }
}

/** A client with the rights to read and push in a repository. */
export class Repository {
  readonly name: string;
  readonly #registry: TestRegistry;

  constructor(registry: TestRegistry, name: string) {
    this.#registry = registry;
    this.name = name;
  }

  /** The path of an endpoint. */
  path(rest: string): string {
    return `/v2/${this.name}/${rest}`;
  }

  /** Sends a request to an endpoint of this repository, or to a location that the registry returned. */
  async send(path: string, sent: Sent = {}): Promise<Answer> {
    return await this.#registry.as(path.startsWith('/') ? path : this.path(path), sent);
  }

  /** Starts an upload and returns its location. */
  async begin(query = ''): Promise<string> {
    const answer = await this.send(`blobs/uploads/${query}`, { method: 'POST', headers: { 'content-length': 0 } });
    assertStatus(answer, 202);
    return String(answer.headers.location);
  }

  /** Sends a chunk, with its range if set. */
  async patch(location: string, body: NonNullable<Sent['body']>, range?: string): Promise<Answer> {
    const headers = { 'content-type': types.octets, ...(range !== undefined && { 'content-range': range }) };
    return await this.send(location, { method: 'PATCH', headers, body });
  }

  /** Finishes an upload. */
  async finish(location: string, digest: string, sent: Sent = {}): Promise<Answer> {
    const join = location.includes('?') ? '&' : '?';
    return await this.send(`${location}${join}digest=${encodeURIComponent(digest)}`, { method: 'PUT', ...sent });
  }

  /** Pushes a blob and returns its descriptor. */
  async blob(bytes: string | Uint8Array, mediaType: string = types.octets): Promise<Descriptor> {
    const digest = sha256(bytes);
    const answer = await this.send(`blobs/uploads/?digest=${digest}`, { method: 'POST', body: bytes });
    assertStatus(answer, 201);
    return { mediaType, digest, size: Buffer.byteLength(bytes) };
  }

  /** Pushes a config and a layer, and returns the manifest of an image with them. */
  async image(more: Document = {}): Promise<Document> {
    const config = await this.blob('{}', types.config);
    const layers = [await this.blob('a layer', types.layer)];
    return { schemaVersion: 2, mediaType: types.image, config, layers, ...more };
  }

  /** Pushes a manifest unchanged, with `type` or its own media type. */
  async put(reference: string, manifest: Document | string | Uint8Array, type?: string): Promise<Answer> {
    const isText = typeof manifest === 'string' || manifest instanceof Uint8Array;
    const body = isText ? manifest : JSON.stringify(manifest);
    const contentType = type ?? (isText ? types.image : (manifest.mediaType ?? types.image));
    return await this.send(`manifests/${reference}`, {
      method: 'PUT',
      headers: { 'content-type': contentType },
      body,
    });
  }

  /** Pushes a manifest by its digest and returns its descriptor. */
  async manifest(manifest: Document): Promise<Descriptor> {
    const body = JSON.stringify(manifest);
    const answer = await this.put(sha256(body), manifest);
    assertStatus(answer, 201);
    return { mediaType: manifest.mediaType ?? types.image, digest: sha256(body), size: Buffer.byteLength(body) };
  }
}

/** The body of a JSON answer. */
export function json(answer: Answer): unknown {
  return JSON.parse(answer.body.toString('utf8'));
}

function assertStatus({ status, body }: Answer, expected: number): void {
  if (status !== expected) throw new Error(`Answered ${status}, not ${expected}: ${body.toString()}`);
}

/** The path of a `Link` header with the relation `next`. */
export function nextOf(answer: Answer): string | undefined {
  return /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link))?.[1];
}
