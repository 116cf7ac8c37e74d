/**
 * Writes an image as an archive for `docker load`, podman and skopeo: an OCI layout with the whole image, and the
 * `manifest.json` of `docker save`, whose layers are the layout's blobs. The same image under the same tag has the same bytes,
 * and the size is known before the first byte is sent.
 *
 *     oci-layout
 *     index.json         the image and its name
 *     manifest.json      for `docker load`: of an index, the image for this node's platform
 *     blobs/sha256/…     manifests, configs, layers
 */
import type { ServerResponse } from 'node:http';
import { Yielder } from '../../core/async/yielder.ts';
import { ignoreErrors, send } from '../../core/blobs/send.ts';
import type { Store } from '../../core/store/store.ts';
import type { ContentContext } from '../context.ts';
import { linkedBlobSize } from '../content/blob-links.ts';
import { contentId, manifests, tagId, tags } from '../content/documents.ts';
import type { StoredManifest } from '../content/documents.ts';
import { indexMediaType, kindOf, maxIndexDepth, parseManifest, referencesOf } from '../content/manifest.ts';
import type { Descriptor } from '../content/manifest.ts';
import { resolveImage } from '../content/pushed-image.ts';
import { images } from '../../model/image.ts';
import { ApiError } from '../../model/api-error.ts';
import { tooLarge } from './api-errors.ts';

export interface ImageArchive {
  readonly fileName: string;
  readonly sizeBytes: number;
  /** Writes the bytes to a response, which stays open. Rejects if the client disconnects or a blob is deleted. */
  copyTo(response: ServerResponse): Promise<void>;
}

export interface ArchiveRequest {
  readonly repository: string;
  readonly digest: string;
  /** Host and port of the registry, for the name of the image. */
  readonly registryHost: string;
  /** Manifests in one image, including those of other platforms. */
  readonly maxManifests: number;
}

/** The name of an image where it is loaded: `host/account/service:tag`, and the tag alone. */
interface ImageName {
  readonly full: string;
  readonly tag: string;
}

const blockBytes = 512;

/** Two empty blocks end a tar. */
const endOfTarBytes = 2 * blockBytes;

/** Longer names, such as those of sha512 digests, need another header. */
const maxPlainName = 100;

/** Constant, so that the same image has the same bytes. */
const unowned = { uid: 0, gid: 0, mode: 0o644, mtime: new Date(0) } as const;

/** Only small documents are kept in memory until they are sent: an index may have thousands of manifests of megabytes. */
type Part = { readonly name: string; readonly sizeBytes: number } & (
  | { readonly bytes: Uint8Array }
  /** The ID of a stored manifest. */
  | { readonly manifest: string }
  /** The digest of a blob. */
  | { readonly digest: string }
);

/** Creates the archive of an image. `undefined` if there is no such manifest. Throws `ImageNotFound` if parts are missing, and `PayloadTooLarge`. */
export async function writeArchive(
  context: ContentContext,
  { repository, digest, registryHost, maxManifests }: ArchiveRequest,
): Promise<ImageArchive | undefined> {
  const { store } = context;
  const stored = await store.get(manifests, contentId(repository, digest));
  if (!stored) return undefined;
  const tag = await currentTag(store, repository, digest);
  // Without a tag, the archive contains no name.
  const name = tag === undefined ? undefined : { full: `${registryHost}/${repository}:${tag}`, tag };
  const blobs = new Map<string, Part>();
  await addManifest(context, stored, {
    blobs,
    manifestsLeft: { count: maxManifests },
    yielder: new Yielder(),
    depth: 0,
  });
  const parts = [
    document('oci-layout', { imageLayoutVersion: '1.0.0' }),
    document('index.json', indexFor(stored, name)),
    ...(await savedManifest(store, stored, name)),
    ...blobs.values(),
  ];
  return {
    fileName: `${repository.replace('/', '-')}-${tag ?? digest.replace(/^.*:/, '').slice(0, 12)}.tar`,
    sizeBytes: parts.reduce((sum, part) => sum + entryBytes(part), endOfTarBytes),
    copyTo: async (response) => await copyParts(context, parts, response),
  };
}

/** The last pushed tag that still points to an image. */
async function currentTag(store: Store, repository: string, digest: string): Promise<string | undefined> {
  const found = await store.find(images, { index: 'byDigest', equals: { repository, digest }, order: 'descending' });
  for (const { tag } of found) {
    if ((await store.get(tags, tagId(repository, tag)))?.digest === digest) return tag;
  }
  return undefined;
}

interface Below {
  /** By path, in an order that is always the same for the same image. */
  readonly blobs: Map<string, Part>;
  /** How many more manifests the image may have. */
  readonly manifestsLeft: { count: number };
  /** The store may answer from memory, and a manifest may have tens of thousands of references. */
  readonly yielder: Yielder;
  readonly depth: number;
}

async function addManifest(context: ContentContext, stored: StoredManifest, below: Below): Promise<void> {
  const { blobs, manifestsLeft, yielder, depth } = below;
  const { repository, digest, bytes, mediaType } = stored;
  const name = pathOf(digest);
  if (blobs.has(name) || depth > maxIndexDepth) return;
  if (manifestsLeft.count === 0) throw tooLarge('would have too many manifests, download the image of one platform');
  manifestsLeft.count -= 1;
  blobs.set(name, { name, sizeBytes: bytes.byteLength, manifest: stored.id });
  const manifest = parseManifest(bytes, mediaType);
  for (const each of referencesOf({ ...manifest, manifests: [] })) {
    await yielder.yieldIfDue();
    await addBlob(context, repository, each, blobs);
  }
  for (const child of manifest.manifests) {
    await yielder.yieldIfDue();
    if (blobs.has(pathOf(child.digest))) continue;
    const isManifest = kindOf(child.mediaType) !== 'other';
    const found = isManifest ? await context.store.get(manifests, contentId(repository, child.digest)) : undefined;
    if (found) await addManifest(context, found, { ...below, depth: depth + 1 });
    else await addBlob(context, repository, child, blobs);
  }
}

async function addBlob(
  context: ContentContext,
  repository: string,
  { digest }: Descriptor,
  blobs: Map<string, Part>,
): Promise<void> {
  const name = pathOf(digest);
  if (blobs.has(name)) return;
  const sizeBytes = await linkedBlobSize(context, repository, digest);
  if (sizeBytes === undefined) {
    throw new ApiError('ImageNotFound', `The blob ${digest} of this image is missing, push the image again`);
  }
  blobs.set(name, { name, sizeBytes, digest });
}

function indexFor({ mediaType, digest, sizeBytes }: StoredManifest, name: ImageName | undefined): object {
  const annotations = name && {
    'io.containerd.image.name': name.full,
    'org.opencontainers.image.ref.name': name.tag,
  };
  return {
    schemaVersion: 2,
    mediaType: indexMediaType,
    manifests: [{ mediaType, digest, size: sizeBytes, ...(annotations && { annotations }) }],
  };
}

/** The `manifest.json` that `docker load` reads. An index without an image for this platform has none. */
async function savedManifest(store: Store, stored: StoredManifest, name: ImageName | undefined): Promise<Part[]> {
  const manifest = parseManifest(stored.bytes, stored.mediaType);
  const image = await resolveImage(store, stored.repository, manifest);
  if (!image?.config) return [];
  const { config, layers } = image;
  const saved = {
    Config: pathOf(config.digest),
    RepoTags: name ? [name.full] : [],
    Layers: layers.map(({ digest }) => pathOf(digest)),
  };
  return [document('manifest.json', [saved])];
}

function document(name: string, content: object): Part {
  const bytes = Buffer.from(JSON.stringify(content));
  return { name, sizeBytes: bytes.length, bytes };
}

function pathOf(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`;
}

async function copyParts(context: ContentContext, parts: readonly Part[], response: ServerResponse): Promise<void> {
  const { downloads, signal } = context;
  using _watched = downloads.watch(response);
  using _quiet = ignoreErrors(response);
  for (const part of parts) {
    signal.throwIfAborted();
    await send(response, await headerOf(part));
    await copyPart(context, part, response);
    const paddingBytes = padded(part.sizeBytes) - part.sizeBytes;
    if (paddingBytes > 0) await send(response, Buffer.alloc(paddingBytes));
  }
  await send(response, Buffer.alloc(endOfTarBytes));
}

async function copyPart({ store, blobs }: ContentContext, part: Part, response: ServerResponse): Promise<void> {
  if ('bytes' in part) {
    await send(response, part.bytes);
    return;
  }
  if ('manifest' in part) {
    const stored = await store.get(manifests, part.manifest);
    if (!stored) throw new Error(`The manifest ${part.manifest} was deleted while its image was sent`);
    await send(response, stored.bytes);
    return;
  }
  await using blob = await blobs.open(part.digest);
  if (blob?.sizeBytes !== part.sizeBytes)
    throw new Error(`The blob ${part.digest} was deleted while its image was sent`);
  if (blob.sizeBytes > 0) await blob.copyTo(response);
}

async function headerOf({ name, sizeBytes }: Part): Promise<Uint8Array> {
  const { pack } = await import('tar-stream');
  const tar = pack();
  tar.entry({ ...unowned, name, size: sizeBytes });
  let header: Buffer = Buffer.alloc(0);
  for await (const block of tar) {
    header = Buffer.concat([header, block as Buffer]);
    // The stream now waits for the content, which is not sent through it.
    if (header.length === headerBytes(name)) break;
  }
  return header;
}

function entryBytes({ name, sizeBytes }: Part): number {
  return headerBytes(name) + padded(sizeBytes);
}

/** The size of a header. A long name needs two more blocks: another header, and the name. */
function headerBytes(name: string): number {
  return (name.length > maxPlainName ? 3 : 1) * blockBytes;
}

function padded(sizeBytes: number): number {
  return Math.ceil(sizeBytes / blockBytes) * blockBytes;
}
