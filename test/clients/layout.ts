/**
 * Images as OCI layouts, which every client reads:
 *
 *   oci-layout             marks the folder as a layout
 *   manifest.json          docker's index, in which the image is `<name>:<tag>`
 *   index.json             the manifest, with its tag
 *   blobs/sha256/<hex>     manifests, configurations and layers
 */
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { sha256 } from '../kit/registry/digests.ts';

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** Layouts on the disk, one for each image. */
export interface Layouts {
  /** Contains one folder per image: `<folder>/small`. */
  readonly folder: string;
  /** Part of every image, so that each run has new images. */
  readonly name: string;
}

export type LayoutTag = 'small' | 'large' | 'index';

/** Architectures of the multi-platform image. */
const platforms = ['amd64', 'arm64'] as const;

/** Large enough for clients to send it in parts, and for a test to kill a push of it. */
export const largeBytes = 12 * 1024 * 1024;

const ociType = 'application/vnd.oci.image';

/** Writes `small` with three layers, `large` with one large layer, and `index` with images for two platforms. */
export async function writeLayouts(folder: string, tags: readonly LayoutTag[]): Promise<Layouts> {
  const name = `berth-client-${randomBytes(6).toString('hex')}`;
  for (const tag of tags) {
    const target = join(folder, tag);
    await mkdir(join(target, 'blobs/sha256'), { recursive: true });
    if (tag === 'index') await writeIndexed(target, name);
    else await writeImage(target, { name, tag });
  }
  return { folder, name };
}

async function writeImage(folder: string, { name, tag }: { name: string; tag: 'small' | 'large' }): Promise<void> {
  // Random bytes, which do not shrink when a client compresses them again.
  const contents =
    tag === 'large' ? [randomBytes(largeBytes)] : ['one', 'two', 'three'].map((each) => `${name} ${each}`);
  const layers = [];
  for (const content of contents) layers.push(await layer(folder, content));
  const made = await image(folder, layers);
  await writeIndex(folder, tag, made.manifest);
  await writeFile(join(folder, 'manifest.json'), JSON.stringify([forLoading(made, `${name}:${tag}`)]));
}

async function writeIndexed(folder: string, name: string): Promise<void> {
  const manifests = [];
  for (const architecture of platforms) {
    const { manifest } = await image(folder, [await layer(folder, `${name} ${architecture}`)], architecture);
    manifests.push({ ...manifest, platform: { architecture, os: 'linux' } });
  }
  const mediaType = `${ociType}.index.v1+json`;
  await writeIndex(folder, 'index', await json(folder, mediaType, { schemaVersion: 2, mediaType, manifests }));
}

async function writeIndex(folder: string, tag: LayoutTag, descriptor: Descriptor): Promise<void> {
  const manifests = [{ ...descriptor, annotations: { 'org.opencontainers.image.ref.name': tag } }];
  await writeFile(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  await writeFile(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
}

interface Image {
  readonly manifest: Descriptor;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

interface Layer extends Descriptor {
  /** The digest of the uncompressed layer. */
  readonly diffId: string;
}

/** Packs a layer as gzip without compression: random bytes do not compress. */
async function layer(folder: string, content: string | Buffer): Promise<Layer> {
  const archive = pack();
  const name = typeof content === 'string' ? content.replaceAll(' ', '-') : 'large';
  archive.entry({ name, mtime: new Date(0) }, content);
  archive.finalize();
  const tar = await buffer(archive);
  const blob = await put(folder, `${ociType}.layer.v1.tar+gzip`, gzipSync(tar, { level: 0 }));
  return { ...blob, diffId: sha256(tar) };
}

async function image(folder: string, layers: readonly Layer[], architecture = 'amd64'): Promise<Image> {
  const rootfs = { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) };
  const config = await json(folder, `${ociType}.config.v1+json`, { architecture, os: 'linux', config: {}, rootfs });
  const mediaType = `${ociType}.manifest.v1+json`;
  const descriptors = layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size }));
  const manifest = await json(folder, mediaType, { schemaVersion: 2, mediaType, config, layers: descriptors });
  return { manifest, config, layers };
}

/** An entry of docker's own `manifest.json`. */
function forLoading({ config, layers }: Image, tag: string) {
  return { Config: pathOf(config.digest), RepoTags: [tag], Layers: layers.map(({ digest }) => pathOf(digest)) };
}

async function json(folder: string, mediaType: string, value: object): Promise<Descriptor> {
  return await put(folder, mediaType, Buffer.from(JSON.stringify(value)));
}

async function put(folder: string, mediaType: string, bytes: Buffer): Promise<Descriptor> {
  const digest = sha256(bytes);
  await writeFile(join(folder, pathOf(digest)), bytes);
  return { mediaType, digest, size: bytes.length };
}

function pathOf(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`;
}
