/** A small registry for tests: it serves images of busybox to the engine, to holders of the right grant. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { listen, newServer } from '../../core/http/listener.ts';
import type { RegistryGrants } from '../../model/registry-grant.ts';

export interface ImageServer extends AsyncDisposable {
  /** `host:port` for the engine. */
  readonly host: string;
  /** Adds an image, with a small layer that no other image has, whose container runs a shell script. Returns its digest. */
  add(script: string): string;
  /** The same, with other things in the image's configuration. */
  addConfigured(config: Readonly<Record<string, unknown>>): string;
  /** How often the engine has asked for the layer that an image has for itself. */
  readonly layerRequests: number;
  /** Such requests that are being held now. */
  readonly heldRequests: number;
  /** Such requests are not answered before this resolves. */
  holdLayers(until: Promise<void>): void;
  /** Subjects of the grants that came. */
  readonly subjects: Set<string>;
}

const busyboxPlaces = ['/usr/bin/busybox', '/bin/busybox', '/usr/sbin/busybox', '/sbin/busybox'];

/** Where a busybox is that runs in an empty image, or why there is none. */
export function findBusybox(): { path: string } | { missing: string } {
  const path = busyboxPlaces.find((place) => existsSync(place));
  if (path === undefined) return { missing: 'no busybox is installed (Debian: busybox-static)' };
  if (!isStatic(readFileSync(path))) return { missing: 'busybox is not static (Debian: busybox-static)' };
  return { path };
}

/** Whether a 64-bit ELF program asks for no interpreter (a program header of type 3). */
function isStatic(program: Buffer): boolean {
  const offset = Number(program.readBigUInt64LE(0x20));
  const size = program.readUInt16LE(0x36);
  const count = program.readUInt16LE(0x38);
  return Array.from({ length: count }, (_, index) => program.readUInt32LE(offset + index * size)).every(
    (type) => type !== 3,
  );
}

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
];

export async function openImageServer(grants: RegistryGrants): Promise<ImageServer> {
  const images = new ImageStore(await busyboxLayer());
  const subjects = new Set<string>();
  const held = { requests: 0, now: 0, until: Promise.resolve() };
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, repository, kind, digest = ''] = /^\/v2\/(.+)\/(blobs|manifests)\/(.+)$/.exec(request.url ?? '') ?? [];
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const grant = await grants.verify(token, new Date());
    const isAllowed = grant?.access.some(
      (access) => access.type === 'repository' && access.name === repository && access.actions.includes('pull'),
    );
    if (!grant || (repository !== undefined && !isAllowed)) return void response.writeHead(401, challenge).end();
    if (repository === undefined) return void response.writeHead(200).end();
    subjects.add(grant.subject);
    const blob = images.blobs.get(digest);
    if (!blob) return void response.writeHead(404, { 'content-type': 'application/json' }).end(unknown);
    if (images.ownLayers.has(digest)) {
      held.requests += 1;
      held.now += 1;
      const gone = new Promise<void>((resolve) => response.once('close', resolve));
      await Promise.race([held.until, gone]);
      held.now -= 1;
    }
    response.writeHead(200, {
      'content-type': kind === 'manifests' ? manifestType : 'application/octet-stream',
      'content-length': blob.length,
      'docker-content-digest': digest,
    });
    response.end(request.method === 'HEAD' ? undefined : blob);
  }
  const server = newServer();
  server.on('request', (request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  const listener = await listen(server, { host: '127.0.0.1', port: 0, drainMs: 0 });
  return {
    host: `127.0.0.1:${listener.port}`,
    subjects,
    get layerRequests() {
      return held.requests;
    },
    get heldRequests() {
      return held.now;
    },
    holdLayers: (until) => {
      held.until = until;
    },
    add: (script) => images.add({ Cmd: ['/bin/sh', '-c', script] }),
    addConfigured: (config) => images.add(config),
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

/** Without it the engine would not show the token that it was given. */
const challenge = { 'www-authenticate': 'Bearer realm="http://127.0.0.1/token",service="berth"' };

const unknown = JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' }] });

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';

interface Layer {
  readonly gzipped: Buffer;
  readonly diffId: string;
}

class ImageStore {
  readonly blobs = new Map<string, Buffer>();
  readonly ownLayers = new Set<string>();
  readonly #base: Layer;

  constructor(base: Layer) {
    this.#base = base;
  }

  add(more: Readonly<Record<string, unknown>>): string {
    const own = layerOf(randomFile());
    const layers = [this.#base, own].map(({ gzipped }) => ({
      mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
      digest: this.#keep(gzipped),
      size: gzipped.length,
    }));
    this.ownLayers.add(layers[1]?.digest ?? '');
    const config = json({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Env: ['PATH=/bin'], WorkingDir: '/www', ...more },
      rootfs: { type: 'layers', diff_ids: [this.#base.diffId, own.diffId] },
    });
    const configType = 'application/vnd.docker.container.image.v1+json';
    const manifest = {
      schemaVersion: 2,
      mediaType: manifestType,
      config: { mediaType: configType, digest: this.#keep(config), size: config.length },
      layers,
    };
    return this.#keep(json(manifest));
  }

  #keep(bytes: Buffer): string {
    const digest = digestOf(bytes);
    this.blobs.set(digest, bytes);
    return digest;
  }
}

/** A tar archive of one small file: two blocks for it, two for the end. */
function randomFile(): Buffer {
  const header = Buffer.alloc(512);
  header.write('own', 0);
  header.write('0000644\u00000000000\u00000000000\u000000000000020\u000000000000000\u0000', 100);
  header.write('        0', 148);
  header.write('ustar\u000000', 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  const content = Buffer.alloc(512);
  randomBytes(16).copy(content);
  return Buffer.concat([header, content, Buffer.alloc(1024)]);
}

function layerOf(tar: Buffer): Layer {
  return { gzipped: gzipSync(tar), diffId: digestOf(tar) };
}

async function busyboxLayer(): Promise<Layer> {
  const found = findBusybox();
  if ('missing' in found) throw new Error(found.missing);
  const tar = pack();
  for (const name of ['bin/', 'www/', 'tmp/']) tar.entry({ name, type: 'directory', mode: 0o755 });
  tar.entry({ name: 'bin/busybox', mode: 0o755 }, readFileSync(found.path));
  for (const name of applets) tar.entry({ name: `bin/${name}`, type: 'symlink', linkname: 'busybox' });
  tar.finalize();
  return layerOf(await buffer(tar));
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
