/** The base images of the Dockerfiles, from layers that are packed once. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { basename, dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { debianRoot, packagesFolder } from '../kit/packages/application-packages.ts';
import { packedLayer } from '../kit/packages/image-layers.ts';
import type { LayerContent, PackedLayer } from '../kit/packages/image-layers.ts';
import type { Base } from './application.ts';
import type { EngineRegistry, Grant } from './engine-registry.ts';
import { excludedFiles, packagesOf } from './packages.ts';
import { sha256 } from '../kit/registry/digests.ts';

const bases: readonly Base[] = ['debian', 'node', 'frontend', 'python'];

/** The base image below each base image. */
const builtOn: Readonly<Record<Base, Base | undefined>> = {
  debian: undefined,
  node: 'debian',
  frontend: 'node',
  python: 'debian',
};

/**
 * The folders of packages. Node.js and Python find them from any program, but Next.js looks only in the folder of the application,
 * and Streamlit runs in another mode without a folder of this name. Paths are short, because an engine opens each folder on the
 * path of a file several times when it unpacks the file.
 */
const packagesAt = {
  node: 'node_modules',
  frontend: 'app/node_modules',
  python: 'dist-packages',
} as const;

/** A part of the names of layers, so that layers with other files or folders have other names. */
const packingHash = createHash('sha256')
  .update(JSON.stringify([excludedFiles, packagesAt]))
  .digest('hex')
  .slice(0, 12);

/** Whether the contents of all base images are installed. */
export async function hasPackages(): Promise<boolean> {
  const found = await Promise.all([debianRoot(), ...Object.values(packagesOf).map(packagesFolder)]);
  return found.every((each) => each !== undefined);
}

/** Packs the layers of all base images, one after another, because each uses a whole core. */
export async function packBases(): Promise<void> {
  for (const base of bases) await layersOf(base);
}

/**
 * Pushes a base image to a registry, and pulls it, so that the engine need not push its layers with each image that is built from it.
 * The base image below it must have been pushed, because its layers are mounted.
 */
export async function provideBase(registry: EngineRegistry, base: Base): Promise<void> {
  const repository = `base-${base}`;
  const below = builtOn[base];
  const layers = await layersOf(base);
  await pushImage(await registry.grant(repository, below && `base-${below}`), layers);
  await registry.pull(repository, `berth-test/${base}`);
}

async function layersOf(base: Base): Promise<PackedLayer[]> {
  const layers = [];
  for (const content of await contentOf(base)) layers.push(await packedLayer(content));
  return layers;
}

async function contentOf(base: Base): Promise<LayerContent[]> {
  const root = await debianRoot();
  const packages = base === 'debian' ? '' : await packagesFolder(packagesOf[base]);
  if (root === undefined || packages === undefined) {
    throw new Error('The packages of the applications are not installed: run npm test');
  }
  const debian: LayerContent = { name: basename(dirname(root)), command: ['cat', root] };
  if (base === 'debian') return [debian];
  const target = packagesAt[base];
  const own = tarOf(basename(dirname(packages)), packages, target);
  return base === 'python' ? [debian, own] : [debian, nodeContent(), own];
}

function nodeContent(): LayerContent {
  return tarOf(`node-${process.version}-${process.arch}`, process.execPath, 'usr/local/bin/node');
}

/** A tar of a file or folder, under another path. */
function tarOf(name: string, path: string, target: string): LayerContent {
  const own = basename(path);
  // Renames the targets of hard links, which are paths in the tar, but not those of symbolic links.
  const renamed = `--transform=s,^${own},${target},S`;
  const without = excludedFiles.map((pattern) => `--exclude=${pattern}`);
  const args = ['-c', '--sort=name', '--owner=0', '--group=0', ...without, renamed, '-C', dirname(path), own];
  return { name: `${name}-${packingHash}`, command: ['tar', ...args] };
}

async function pushImage(to: Grant, layers: readonly PackedLayer[]): Promise<void> {
  for (const layer of layers) await pushLayer(to, layer);
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const rootfs = { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) };
  const Env = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', `PYTHONPATH=/${packagesAt.python}`];
  // A label for each registry, because an engine that has the same image from elsewhere would push its layers with each derived
  // image.
  const Labels = { 'berth-test.source': to.url };
  const config = JSON.stringify({ architecture, os: 'linux', config: { Env, Labels }, rootfs });
  const digest = sha256(config);
  const octets = { 'content-type': 'application/octet-stream' };
  await send(to, `${to.url}/blobs/uploads/?digest=${digest}`, { method: 'POST', headers: octets, body: config });
  const mediaType = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: { mediaType: 'application/vnd.docker.container.image.v1+json', digest, size: config.length },
    layers: layers.map((layer) => ({
      mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
      digest: layer.digest,
      size: layer.sizeBytes,
    })),
  };
  const headers = { 'content-type': mediaType };
  await send(to, `${to.url}/manifests/latest`, { method: 'PUT', headers, body: JSON.stringify(manifest) });
}

/** Mounts a layer that the base image below has, or pushes it. */
async function pushLayer(to: Grant, { digest, sizeBytes, file }: PackedLayer): Promise<void> {
  const mount = to.mountFrom === undefined ? '' : `?mount=${digest}&from=${to.mountFrom}`;
  const begun = await send(to, `${to.url}/blobs/uploads/${mount}`, { method: 'POST' });
  if (begun.status === 201) return;
  const location = new URL(begun.headers.get('location') ?? '', to.url);
  location.searchParams.set('digest', digest);
  // For a large file, this takes a fraction of the CPU time of `fetch`.
  const put = request(location, {
    method: 'PUT',
    headers: {
      authorization: to.authorization,
      'content-type': 'application/octet-stream',
      'content-length': sizeBytes,
    },
  });
  const [[answer]] = await Promise.all([
    once(put, 'response') as Promise<[IncomingMessage]>,
    pipeline(createReadStream(file, { highWaterMark: 1024 * 1024 }), put),
  ]);
  const body = await text(answer);
  if (answer.statusCode !== 201) throw new Error(`The push of ${digest} returned ${answer.statusCode}: ${body}`);
}

async function send(
  { authorization }: Grant,
  url: string,
  { headers, ...init }: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
): Promise<Response> {
  const answer = await fetch(url, { ...init, headers: { ...headers, authorization } });
  if (!answer.ok) throw new Error(`${init.method} ${url} returned ${answer.status}: ${await answer.text()}`);
  return answer;
}
