/** Images of busybox in a real registry, behind a proxy that counts the requests of the engine and can delay them. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import type { Pack } from 'tar-stream';
import { listen, newServer } from '../../core/http/listener.ts';
import type { RegistryGrants } from '../../model/registry-grant.ts';
import { staticBusybox } from '../../test/kit/packages/docker-packages.ts';
import { openTestRegistry, pushBlob, putManifest, sha256 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';

/** The repository of all images. */
const repository = 'acme/draw';

const applets = [
  'sh',
  'httpd',
  'sleep',
  'env',
  'tail',
  'cat',
  'nc',
  'id',
  'wget',
  'ls',
  'touch',
  'kill',
  'true',
  'nslookup',
  'chown',
  'chmod',
  'mknod',
  'chroot',
  'mount',
  'ping',
  'arping',
  'rm',
];

interface Layer {
  readonly digest: string;
  readonly size: number;
  /** The digest of its uncompressed content. */
  readonly diffId: string;
}

export class TestImages implements AsyncDisposable {
  /** The images that were added, by the names under which an engine pulls them. A list of all its images costs an engine 25 ms. */
  readonly references: string[] = [];
  readonly #registry: TestRegistry;
  readonly #proxy: LayerProxy;
  readonly #base: Layer;
  readonly #parts: AsyncDisposableStack;

  private constructor(registry: TestRegistry, proxy: LayerProxy, base: Layer, parts: AsyncDisposableStack) {
    this.#registry = registry;
    this.#proxy = proxy;
    this.#base = base;
    this.#parts = parts;
  }

  static async open(): Promise<TestImages> {
    await using parts = new AsyncDisposableStack();
    const registry = parts.use(await openTestRegistry());
    const proxy = parts.use(await LayerProxy.open(registry));
    const base = await pushLayer(registry, await packedBase());
    return new TestImages(registry, proxy, base, parts.move());
  }

  /** `host:port` for the engine. */
  get host(): string {
    return this.#proxy.host;
  }

  /** Issues tokens that the registry accepts. */
  get grants(): RegistryGrants {
    return this.#registry.grants;
  }

  /** The number of requests for a layer that only one image has. */
  get layerRequests(): number {
    return this.#proxy.layerRequests;
  }

  /** The number of such requests that are being delayed. */
  get heldRequests(): number {
    return this.#proxy.heldRequests;
  }

  /** The subjects of the tokens in requests. */
  get subjects(): ReadonlySet<string> {
    return this.#proxy.subjects;
  }

  /** Delays such requests until this resolves. */
  holdLayers(until: Promise<void>): void {
    this.#proxy.until = until;
  }

  /** Adds an image, with a small layer that no other image has, whose container runs a shell script. Returns its digest. */
  async add(script: string): Promise<string> {
    return await this.addConfigured({ Cmd: ['/bin/sh', '-c', script] });
  }

  /** The same, with other values in the image's configuration. */
  async addConfigured(
    more: Readonly<Record<string, unknown>>,
    image: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const own = await pushLayer(
      this.#registry,
      await packLayer((tar) => void tar.entry({ name: 'own' }, randomBytes(16))),
    );
    this.#proxy.ownLayers.add(own.digest);
    const layers = [this.#base, own];
    const config = {
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Env: ['PATH=/bin'], WorkingDir: '/www', ...more },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      ...image,
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
      config: {
        mediaType: 'application/vnd.docker.container.image.v1+json',
        ...(await pushBlob(this.#registry, repository, JSON.stringify(config))),
      },
      layers: layers.map(({ digest, size }) => ({
        mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
        digest,
        size,
      })),
    };
    const reference = sha256(JSON.stringify(manifest));
    const { status, body, digest } = await putManifest(this.#registry, { repository, reference }, manifest);
    if (status !== 201) throw new Error(`Push of a manifest answered ${status}: ${body.toString()}`);
    this.references.push(`${this.host}/${repository}@${digest}`);
    return digest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

interface PackedLayer {
  readonly bytes: Buffer;
  readonly diffId: string;
}

/** Shared by all platforms in this process, because its compression takes a tenth of a second of CPU time. */
let base: Promise<PackedLayer> | undefined;

async function packedBase(): Promise<PackedLayer> {
  return await (base ??= packBase());
}

async function packBase(): Promise<PackedLayer> {
  const busybox = await staticBusybox();
  if (busybox === undefined) throw new Error('Install busybox-static, of which the test images are made');
  const program = await readFile(busybox);
  return await packLayer((tar) => {
    for (const name of ['bin/', 'www/', 'tmp/']) tar.entry({ name, type: 'directory', mode: 0o755 });
    tar.entry({ name: 'bin/busybox', mode: 0o755 }, program);
    for (const name of applets) tar.entry({ name: `bin/${name}`, type: 'symlink', linkname: 'busybox' });
  });
}

async function packLayer(fill: (tar: Pack) => void): Promise<PackedLayer> {
  const tar = pack();
  fill(tar);
  tar.finalize();
  const bytes = await buffer(tar);
  return { bytes: gzipSync(bytes, { level: 1 }), diffId: sha256(bytes) };
}

async function pushLayer(registry: TestRegistry, { bytes, diffId }: PackedLayer): Promise<Layer> {
  return { ...(await pushBlob(registry, repository, bytes)), diffId };
}

/** A proxy between the engine and the registry. */
class LayerProxy implements AsyncDisposable {
  readonly subjects = new Set<string>();
  readonly ownLayers = new Set<string>();
  layerRequests = 0;
  heldRequests = 0;
  until = Promise.resolve();
  readonly #registry: TestRegistry;
  #listener: (AsyncDisposable & { readonly port: number }) | undefined;

  private constructor(registry: TestRegistry) {
    this.#registry = registry;
  }

  static async open(registry: TestRegistry): Promise<LayerProxy> {
    const proxy = new LayerProxy(registry);
    const server = newServer();
    server.on('request', (request, response) => {
      proxy.#pass(request, response).catch(() => response.destroy());
    });
    proxy.#listener = await listen(server, { host: '127.0.0.1', port: 0, drainMs: 0 });
    return proxy;
  }

  get host(): string {
    return `127.0.0.1:${this.#listener?.port}`;
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '', headers } = request;
    const token = headers.authorization?.replace(/^Bearer /, '') ?? '';
    const grant = await this.#registry.grants.verify(token, new Date());
    if (grant) this.subjects.add(grant.subject);
    const [, digest = ''] = /\/blobs\/(.+)$/.exec(url) ?? [];
    if (this.ownLayers.has(digest)) await this.#hold(response);
    const forwarded = httpRequest({ host: '127.0.0.1', port: this.#registry.port, method, path: url, headers });
    forwarded.end();
    const [answer] = (await once(forwarded, 'response')) as [IncomingMessage];
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    await pipeline(answer, response);
  }

  async #hold(response: ServerResponse): Promise<void> {
    this.layerRequests += 1;
    this.heldRequests += 1;
    const gone = new Promise<void>((resolve) => response.once('close', resolve));
    await Promise.race([this.until, gone]);
    this.heldRequests -= 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener?.[Symbol.asyncDispose]();
  }
}
