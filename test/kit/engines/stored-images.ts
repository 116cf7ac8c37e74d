/**
 * Test images in a platform's registry, pushed by this process. An engine would compress every layer again for each registry, which
 * for the sample application takes four seconds of CPU time.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { packImage } from '../../../setup/image.ts';
import type { Image } from '../../../setup/image.ts';
import { cached } from '../packages/cached.ts';
import { contentOf, RegistryClient } from '../platform/registry-client.ts';
import type { Content } from '../platform/registry-client.ts';
import type { TestEngine } from './docker-engine.ts';
import { pullImage } from './engine-client.ts';
import type { PushTarget } from './images.ts';

interface Blobs {
  readonly config: Content;
  readonly layers: readonly Content[];
}

/** Layers from this size on are cached on the disk. The layer of Node.js is larger, and takes more than a second to compress. */
const minKeptBytes = 16 * 1024 * 1024;

/** Compressed layers by the names of their archives, and images by their layers and config. */
const compressed = new Map<string, Promise<Content>>();
const packed = new Map<string, Promise<Blobs>>();

export interface Stored {
  readonly image: Image;
  readonly service: string;
  readonly tag?: string;
}

/** Pushes an image as `<account>/<service>:<tag>`, pulls it to an engine, and returns its digest. */
export async function storeAndPull(engine: TestEngine, target: PushTarget, stored: Stored): Promise<string> {
  const digest = await storeTestImage(target, stored);
  const { registry, account } = target;
  await pullImage(engine, `${registry}/${account}/${stored.service}:${stored.tag ?? 'latest'}`, target);
  return digest;
}

/** Pushes an image, which nodes pull at the first start of a backend. The time limit of that start includes the pull. */
export async function storeTestImage(target: PushTarget, { image, service, tag = 'latest' }: Stored): Promise<string> {
  const { config, layers } = await blobsOf(image);
  const describe = (kind: string, { bytes, digest }: Content) => ({
    mediaType: `application/vnd.oci.image.${kind}`,
    digest,
    size: bytes.length,
  });
  const manifest = contentOf(
    Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        config: describe('config.v1+json', config),
        layers: layers.map((layer) => describe('layer.v1.tar+gzip', layer)),
      }),
    ),
  );
  await new RegistryClient(target).push({ repository: `${target.account}/${service}`, tag, config, layers, manifest });
  return manifest.digest;
}

async function blobsOf(image: Image): Promise<Blobs> {
  const key = JSON.stringify([image.layers, image.config]);
  const known = packed.get(key);
  if (known) return await known;
  const packing = pack(image);
  packed.set(key, packing);
  return await packing;
}

async function pack(image: Image): Promise<Blobs> {
  const files = new Map<string, Buffer>();
  for await (const file of packImage(image).pipe(extract())) files.set(file.header.name, await buffer(file));
  const read = (name: string) => files.get(name) ?? Buffer.alloc(0);
  const [listed] = JSON.parse(read('manifest.json').toString()) as [{ Config: string; Layers: string[] }];
  const layers = await Promise.all(listed.Layers.map(async (name) => await compress(name, read(name))));
  return { config: contentOf(read(listed.Config)), layers };
}

/** Returns the same bytes each time, so that an engine that has a layer does not pull it again. */
async function compress(name: string, layer: Buffer): Promise<Content> {
  const known = compressed.get(name);
  if (known) return await known;
  const compressing = (layer.length < minKeptBytes ? zip(layer) : zipOnce(name, layer)).then(contentOf);
  compressed.set(name, compressing);
  return await compressing;
}

/** Compresses a layer, unless another process or an earlier run has. Its name contains its digest. */
async function zipOnce(name: string, layer: Buffer): Promise<Buffer> {
  const folder = await cached(`compressed-${name}`, async (making) => {
    await writeFile(join(making, 'layer.gz'), await zip(layer));
  });
  return await readFile(join(folder, 'layer.gz'));
}

async function zip(layer: Buffer): Promise<Buffer> {
  return await promisify(gzip)(layer, { level: 1 });
}
