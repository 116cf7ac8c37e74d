/**
 * An image as an archive that `docker load`, podman and skopeo take: an OCI layout with the whole image, and beside it the
 * `manifest.json` of `docker save`, whose layers are the layout's blobs. The same image under the same tag gives the same
 * bytes, and how many is known before the first one.
 *
 *     oci-layout
 *     index.json         the image and its name
 *     manifest.json      for `docker load`: of an index, the image for this node's platform
 *     blobs/sha256/…     manifests, configs, layers
 */
import type { ServerResponse } from 'node:http';
import { pack } from 'tar-stream';
import { keptQuiet, send } from '../../core/blobs/send.ts';
import type { RegistryContext } from '../context.ts';
import { linkedBlobSize } from '../content/blob-links.ts';
import { contentId, manifests } from '../content/documents.ts';
import { indexMediaType, isForeign, kindOf, parseManifest } from '../content/manifest.ts';
import type { Descriptor, Manifest } from '../content/manifest.ts';
import { resolveImage } from '../content/pushed-image.ts';
import { ApiError } from '../../model/api-error.ts';
import { maxIndexDepth } from './limits.ts';

export interface ImageArchive {
  readonly fileName: string;
  readonly sizeBytes: number;
  /** Writes the bytes to an answer, which stays open. Rejects when the client leaves, and where a blob vanishes meanwhile. */
  copyTo(response: ServerResponse): Promise<void>;
}

/** Which image, and how it is to be called where it is loaded. */
export interface ArchiveWish {
  readonly repository: string;
  readonly digest: string;
  /** `host/account/service:tag`, and the tag alone. Without a tag, the archive has no name in it. */
  readonly name: { readonly full: string; readonly tag: string } | undefined;
}

const blockBytes = 512;

/** Two empty blocks end a tar. */
const endOfTarBytes = 2 * blockBytes;

/** Longer names have a header of their own: those of sha512 digests. */
const maxPlainName = 100;

/** Nobody's, from no time. */
const unowned = { uid: 0, gid: 0, mode: 0o644, mtime: new Date(0) } as const;

type Part =
  | { readonly name: string; readonly sizeBytes: number; readonly bytes: Uint8Array }
  | { readonly name: string; readonly sizeBytes: number; readonly digest: string };

/** The archive of an image, or `undefined` if the repository has no such manifest. Throws `ImageNotFound` if parts are gone. */
export async function writeArchive(context: RegistryContext, wish: ArchiveWish): Promise<ImageArchive | undefined> {
  const { repository, digest } = wish;
  const stored = await context.store.get(manifests, contentId(repository, digest));
  if (!stored) return undefined;
  const manifest = parseManifest(stored.bytes, stored.mediaType);
  const blobs = new Map<string, Part>();
  await addManifest(context, repository, { digest, bytes: stored.bytes, manifest }, { blobs, depth: 0 });
  const descriptor = { mediaType: stored.mediaType, digest, size: stored.sizeBytes };
  const parts = [
    document('oci-layout', { imageLayoutVersion: '1.0.0' }),
    document('index.json', indexFor(descriptor, wish)),
    ...(await savedManifest(context, wish, manifest)),
    ...blobs.values(),
  ];
  const sizeBytes = parts.reduce((sum, part) => sum + entryBytes(part), endOfTarBytes);
  return {
    fileName: fileNameFor(wish),
    sizeBytes,
    copyTo: async (response) => await copyParts(context, parts, response),
  };
}

interface Below {
  /** By path, in the order in which they are found: the same for the same image. */
  readonly blobs: Map<string, Part>;
  readonly depth: number;
}

async function addManifest(
  context: RegistryContext,
  repository: string,
  found: { readonly digest: string; readonly bytes: Uint8Array; readonly manifest: Manifest },
  { blobs, depth }: Below,
): Promise<void> {
  const { manifest, bytes } = found;
  const name = pathOf(found.digest);
  if (blobs.has(name) || depth > maxIndexDepth) return;
  blobs.set(name, { name, sizeBytes: bytes.byteLength, bytes });
  const { config, layers, manifests: children, blobs: others } = manifest;
  for (const each of [...(config ? [config] : []), ...layers.filter((layer) => !isForeign(layer)), ...others]) {
    await addBlob(context, repository, each, blobs);
  }
  for (const child of children) {
    const stored =
      kindOf(child.mediaType) === 'other'
        ? undefined
        : await context.store.get(manifests, contentId(repository, child.digest));
    if (!stored) {
      await addBlob(context, repository, child, blobs);
      continue;
    }
    const parsed = {
      digest: child.digest,
      bytes: stored.bytes,
      manifest: parseManifest(stored.bytes, stored.mediaType),
    };
    await addManifest(context, repository, parsed, { blobs, depth: depth + 1 });
  }
}

async function addBlob(
  context: RegistryContext,
  repository: string,
  { digest }: Descriptor,
  blobs: Map<string, Part>,
): Promise<void> {
  const name = pathOf(digest);
  if (blobs.has(name)) return;
  const sizeBytes = await linkedBlobSize(context, repository, digest);
  if (sizeBytes === undefined) {
    throw new ApiError('ImageNotFound', `Of this image, ${digest} is gone, push it again`);
  }
  blobs.set(name, { name, sizeBytes, digest });
}

function indexFor(descriptor: { readonly mediaType: string; readonly digest: string }, { name }: ArchiveWish): object {
  const annotations = name && {
    'io.containerd.image.name': name.full,
    'org.opencontainers.image.ref.name': name.tag,
  };
  return {
    schemaVersion: 2,
    mediaType: indexMediaType,
    manifests: [{ ...descriptor, ...(annotations && { annotations }) }],
  };
}

/** What `docker load` reads. An index without an image for any node has none. */
async function savedManifest(
  { store }: RegistryContext,
  { repository, name }: ArchiveWish,
  manifest: Manifest,
): Promise<Part[]> {
  const image = await resolveImage(store, repository, manifest);
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

async function copyParts(context: RegistryContext, parts: readonly Part[], response: ServerResponse): Promise<void> {
  const { pulls, signal } = context;
  using _watched = pulls.watch(response);
  using _quiet = keptQuiet(response);
  for (const part of parts) {
    signal.throwIfAborted();
    await send(response, await headerOf(part));
    await copyPart(context, part, response);
    const paddingBytes = padded(part.sizeBytes) - part.sizeBytes;
    if (paddingBytes > 0) await send(response, Buffer.alloc(paddingBytes));
  }
  await send(response, Buffer.alloc(endOfTarBytes));
}

async function copyPart({ blobs }: RegistryContext, part: Part, response: ServerResponse): Promise<void> {
  if ('bytes' in part) {
    await send(response, part.bytes);
    return;
  }
  await using blob = await blobs.open(part.digest);
  if (blob?.sizeBytes !== part.sizeBytes) throw new Error(`Of an image that is being sent, ${part.digest} is gone`);
  if (blob.sizeBytes > 0) await blob.copyTo(response);
}

async function headerOf({ name, sizeBytes }: Part): Promise<Uint8Array> {
  const tar = pack();
  tar.entry({ ...unowned, name, size: sizeBytes });
  let header: Buffer = Buffer.alloc(0);
  for await (const block of tar) {
    header = Buffer.concat([header, block as Buffer]);
    // It waits for the content now, which goes past it.
    if (header.length === headerBytes(name)) break;
  }
  return header;
}

function entryBytes({ name, sizeBytes }: Part): number {
  return headerBytes(name) + padded(sizeBytes);
}

/** A header, with a block of longer names and its header before it where the name needs that. */
function headerBytes(name: string): number {
  return (name.length > maxPlainName ? 3 : 1) * blockBytes;
}

function padded(sizeBytes: number): number {
  return Math.ceil(sizeBytes / blockBytes) * blockBytes;
}

function fileNameFor({ repository, digest, name }: ArchiveWish): string {
  const [, hex = ''] = digest.split(':');
  return `${repository.replace('/', '-')}-${name?.tag ?? hex.slice(0, 12)}.tar`;
}
