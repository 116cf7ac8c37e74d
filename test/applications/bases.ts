/** The images that the Dockerfiles build upon, from layers that are packed once. */
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
import { leftOut, packagesOf } from './packages.ts';

const bases: readonly Base[] = ['debian', 'node', 'frontend', 'python'];

/** Each base, with the one that has the layers below its own. */
const builtOn: Readonly<Record<Base, Base | undefined>> = {
  debian: undefined,
  node: 'debian',
  frontend: 'node',
  python: 'debian',
};

/**
 * Where Node.js and Python look for packages: wherever a program is, but Next.js looks only in the folder of the application, and
 * Streamlit has another mode where no folder has such a name. An engine that unpacks a file opens each folder on its path several times.
 */
const packagesAt = {
  node: 'node_modules',
  frontend: 'app/node_modules',
  python: 'dist-packages',
} as const;

/** For the names of layers: what was packed otherwise is another layer. */
const packedHow = createHash('sha256')
  .update(JSON.stringify([leftOut, packagesAt]))
  .digest('hex')
  .slice(0, 12);

/** Whether all that the bases are made of is installed. */
export async function hasPackages(): Promise<boolean> {
  const found = await Promise.all([debianRoot(), ...Object.values(packagesOf).map(packagesFolder)]);
  return found.every((each) => each !== undefined);
}

/** Packs the layers of all bases, one after another, since each uses all of a processor. */
export async function packBases(): Promise<void> {
  for (const base of bases) await layersOf(base);
}

/**
 * Pushes a base to a registry, and pulls it, so that the engine need not push its layers with each image that is built upon it.
 * The base below it must be there: its layers are mounted.
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
  // Targets of symbolic links stay as they are, and those of hard links are paths in the tar.
  const renamed = `--transform=s,^${own},${target},S`;
  const without = leftOut.map((pattern) => `--exclude=${pattern}`);
  const args = ['-c', '--sort=name', '--owner=0', '--group=0', ...without, renamed, '-C', dirname(path), own];
  return { name: `${name}-${packedHow}`, command: ['tar', ...args] };
}

async function pushImage(to: Grant, layers: readonly PackedLayer[]): Promise<void> {
  for (const layer of layers) await pushLayer(to, layer);
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const rootfs = { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) };
  const Env = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', `PYTHONPATH=/${packagesAt.python}`];
  // An engine that has the same image does not ask where its layers are, and would push them with the images that are built upon it.
  const Labels = { 'berth-test.source': to.url };
  const config = JSON.stringify({ architecture, os: 'linux', config: { Env, Labels }, rootfs });
  const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`;
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

/** Mounts a layer that the base below has, or pushes it. */
async function pushLayer(to: Grant, { digest, sizeBytes, file }: PackedLayer): Promise<void> {
  const mount = to.mountFrom === undefined ? '' : `?mount=${digest}&from=${to.mountFrom}`;
  const begun = await send(to, `${to.url}/blobs/uploads/${mount}`, { method: 'POST' });
  if (begun.status === 201) return;
  const location = new URL(begun.headers.get('location') ?? '', to.url);
  location.searchParams.set('digest', digest);
  // For a large file, this takes a fraction of the processor time that `fetch` takes.
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
  const said = await text(answer);
  if (answer.statusCode !== 201)
    throw new Error(`The push of ${digest} was answered with ${answer.statusCode}: ${said}`);
}

async function send(
  { authorization }: Grant,
  url: string,
  { headers, ...init }: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
): Promise<Response> {
  const answer = await fetch(url, { ...init, headers: { ...headers, authorization } });
  if (!answer.ok) throw new Error(`${init.method} ${url} was answered with ${answer.status}: ${await answer.text()}`);
  return answer;
}
