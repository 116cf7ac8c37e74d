/** The requests of registry clients. Digests are computed before the time is measured. */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { RawConnection } from './raw-connection.ts';
import { authorizationOf } from './raw-image.ts';
import { sha256 } from '../test/kit/registry/digests.ts';

/** A repository of a registry, and the client's credentials. */
export interface Repository {
  readonly host: string;
  readonly port: number;
  /** Such as `acme/draw`. */
  readonly name: string;
  readonly authorization: string;
}

/**
 * The measured repository, with the bearer token that a client requests first. Tokens are valid for some minutes, so each measurement
 * has its own token.
 *
 * @param registry - host and port of one of the platform's registries
 */
export async function loggedIn(platform: TestPlatform, registry: string): Promise<Repository> {
  const name = `${platform.account}/bench`;
  const url = `http://${registry}/token?service=berth-registry&scope=repository:${name}:pull,push`;
  const answer = await fetch(url, { headers: { authorization: authorizationOf(platform) } });
  const { token } = (await answer.json()) as { token: string };
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), name, authorization: `Bearer ${token}` };
}

export interface Blob {
  readonly digest: string;
  readonly bytes: Buffer;
}

/** Creates new blobs. They differ in their first bytes only, because random bytes take longer to generate than to push. */
export function newBlobs(count: number, sizeBytes: number): Blob[] {
  const pattern = randomBytes(Math.min(sizeBytes, 1024 * 1024));
  return Array.from({ length: count }, () => {
    const bytes = Buffer.alloc(sizeBytes, pattern);
    randomBytes(16).copy(bytes);
    return { digest: sha256(bytes), bytes };
  });
}

/** A client that pushes, over kept-alive connections. */
export class Pusher implements Disposable {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #repository: Repository;

  constructor(repository: Repository) {
    this.#repository = repository;
  }

  /** Pushes a blob by POST and PUT. */
  async blob({ digest, bytes }: Blob): Promise<void> {
    const begun = await this.#send('POST', 'blobs/uploads/', {});
    const { host, port, name } = this.#repository;
    const location = new URL(begun.location ?? '', `http://${host}:${port}/v2/${name}/`);
    location.searchParams.set('digest', digest);
    const headers = { 'content-type': 'application/octet-stream', 'content-length': bytes.length };
    await this.#send('PUT', `${location.pathname}${location.search}`, headers, bytes);
  }

  /** Pushes an image of pushed layers as `tag`. Returns the size of its manifest. */
  async image(layers: readonly Blob[], tag: string): Promise<number> {
    const rootfs = { type: 'layers', diff_ids: layers.map(({ digest }) => digest) };
    const config = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs }));
    await this.blob({ digest: sha256(config), bytes: config });
    const type = 'application/vnd.oci.image.manifest.v1+json';
    const describe = (mediaType: string, bytes: Buffer) => ({
      mediaType: `application/vnd.oci.image.${mediaType}`,
      digest: sha256(bytes),
      size: bytes.length,
    });
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: type,
        config: describe('config.v1+json', config),
        layers: layers.map(({ bytes }) => describe('layer.v1.tar', bytes)),
      }),
    );
    await this.#send('PUT', `manifests/${tag}`, { 'content-type': type, 'content-length': manifest.length }, manifest);
    return manifest.length;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string | number>>,
    body?: Buffer,
  ): Promise<IncomingHttpHeaders> {
    const { host, port, name, authorization } = this.#repository;
    return await new Promise((resolve, reject) => {
      const sent = request({
        host,
        port,
        method,
        agent: this.#agent,
        path: path.startsWith('/') ? path : `/v2/${name}/${path}`,
        headers: { ...headers, ...(authorization && { authorization }) },
      });
      sent.once('error', reject);
      sent.once('response', (answer) => {
        answer.resume();
        answer.once('error', reject);
        answer.once('end', () => {
          if (answer.statusCode === 201 || answer.statusCode === 202) resolve(answer.headers);
          else reject(new Error(`${method} ${path} returned ${answer.statusCode}`));
        });
      });
      sent.end(body);
    });
  }
}

/** A client that pulls: one connection, one request after the other. */
export class Puller implements Disposable {
  readonly #connection: RawConnection;
  readonly #repository: Repository;

  private constructor(connection: RawConnection, repository: Repository) {
    this.#connection = connection;
    this.#repository = repository;
  }

  static async open(repository: Repository): Promise<Puller> {
    return new Puller(await RawConnection.open(repository.host, repository.port), repository);
  }

  /** Requests a blob or a manifest. Throws if its size differs. */
  async ask(method: 'GET' | 'HEAD', path: string, sizeBytes: number): Promise<void> {
    const { host, port, name, authorization } = this.#repository;
    const lines = [
      `${method} /v2/${name}/${path} HTTP/1.1`,
      `host: ${host}:${port}`,
      'accept: application/vnd.oci.image.manifest.v1+json',
      ...(authorization ? [`authorization: ${authorization}`] : []),
    ];
    const length = await this.#connection.ask(`${lines.join('\r\n')}\r\n\r\n`, method === 'GET');
    if (length !== sizeBytes) throw new Error(`${path} has ${length} bytes instead of ${sizeBytes}`);
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

export interface Reading {
  readonly concurrency: number;
  readonly count: number;
  readonly path: string;
  readonly sizeBytes: number;
  readonly method?: 'GET' | 'HEAD';
}

/** Reads one path `count` times, from these registries in turn, and returns the duration in seconds. */
export async function readAll(repositories: readonly Repository[], reading: Reading): Promise<number> {
  const { concurrency, count, path, sizeBytes, method = 'GET' } = reading;
  using opened = new DisposableStack();
  const pullers: Puller[] = [];
  while (pullers.length < concurrency) {
    const repository = repositories[pullers.length % repositories.length];
    if (repository) pullers.push(opened.use(await Puller.open(repository)));
  }
  const startedMs = performance.now();
  await atATime(concurrency, Array.from({ length: count }), async (_item, worker) => {
    await pullers[worker]?.ask(method, path, sizeBytes);
  });
  return (performance.now() - startedMs) / 1000;
}

/** Runs `work` for each item, at most `concurrency` at a time; `worker` is the index of the runner. */
export async function atATime<Item>(
  concurrency: number,
  items: readonly Item[],
  work: (item: Item, worker: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async (_, worker) => {
      while (next < items.length) await work(items[next++] as Item, worker);
    }),
  );
}
