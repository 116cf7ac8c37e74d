/** Checks everything that an image of an archive refers to, and stores its manifests as pushes would. */
import { z } from 'zod';
import type { ContentContext } from '../context.ts';
import { contentId, manifests } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import { isContainerImage, kindOf, maxIndexDepth, parseManifest, partsOf } from '../content/manifest.ts';
import type { Descriptor, Manifest } from '../content/manifest.ts';
import { pushManifest } from '../content/manifest-push.ts';
import { maxConfigBytes, readBlob } from '../content/pushed-image.ts';
import type { SelectedImage } from './image-selector.ts';
import type { ArchiveContents } from './archive-contents.ts';
import { readManifestBlob } from './archive-images.ts';
import type { Root } from './archive-images.ts';
import type { ArchiveLimits } from './limits.ts';
import { badArchive, tooLarge } from './api-errors.ts';

export interface Storing {
  readonly context: ContentContext;
  readonly repository: string;
  /** The account that pushes. */
  readonly by: string;
  readonly contents: ArchiveContents;
  readonly limits: ArchiveLimits;
}

const config = z.object({ rootfs: z.object({ diff_ids: z.array(z.string()).nullish() }).nullish() });

/**
 * Stores an image and everything below it in the repository, children first: after a crash in between, nothing refers to missing
 * content. Throws `BadRequest` for content that is missing or does not match its descriptor.
 */
export async function storeImage(storing: Storing, { root, tagNames }: SelectedImage<Root>): Promise<void> {
  const found: Found[] = [];
  await collect(storing, root, { depth: 0, found, seen: new Set() });
  if (!found.some(({ manifest }) => isContainerImage(manifest))) throw badArchive('holds no image of a container');
  const { context, repository, by } = storing;
  for (const { digest, manifest } of found) {
    const bytes = digest === root.digest ? root.bytes : await bytesOf(storing, digest);
    await pushManifest(context, {
      repository,
      digest,
      bytes,
      manifest,
      tagNames: digest === root.digest ? tagNames : [],
      by,
    });
  }
}

/** A manifest without its bytes: hundreds of manifests may have some megabytes each. */
interface Found {
  readonly digest: string;
  readonly manifest: Manifest;
}

interface Walk {
  readonly depth: number;
  /** Manifests of the archive, each after all that are below it. */
  readonly found: Found[];
  readonly seen: Set<string>;
}

async function collect(storing: Storing, { digest, mediaType, bytes }: Root, walk: Walk): Promise<void> {
  const { context, contents, repository, limits } = storing;
  const { depth, found, seen } = walk;
  if (seen.has(digest)) return;
  seen.add(digest);
  if (depth > maxIndexDepth) throw badArchive(`has indexes nested deeper than ${maxIndexDepth} levels`);
  if (seen.size > limits.maxManifests) throw tooLarge(`has more than ${limits.maxManifests} manifests in one image`);
  const manifest = parseNamed(digest, bytes, mediaType);
  checkSizes(contents, manifest);
  if (isContainerImage(manifest)) await checkLayers(storing, manifest);
  for (const child of manifest.manifests) {
    if (kindOf(child.mediaType) === 'other') continue;
    const childBytes = await readManifestBlob(context, contents, child.digest);
    if (childBytes) {
      await collect(
        storing,
        { digest: child.digest, mediaType: child.mediaType, bytes: childBytes },
        { ...walk, depth: depth + 1 },
      );
    } else if (!(await context.store.get(manifests, contentId(repository, child.digest)))) {
      throw badArchive(`lacks ${child.digest}, which its index names: save all platforms, or one only`);
    }
  }
  found.push({ digest, manifest });
}

function parseNamed(digest: string, bytes: Uint8Array, mediaType: string): Manifest {
  try {
    return parseManifest(bytes, mediaType);
  } catch (error) {
    const why = error instanceof RegistryError ? (error.detail ?? error.message) : String(error);
    throw badArchive(`has an invalid manifest, ${digest}: ${why}`, error);
  }
}

/** Checks the sizes of content in the archive. Content that it lacks may be in the repository, which is checked later. */
function checkSizes(contents: ArchiveContents, manifest: Manifest): void {
  for (const { digest, size } of partsOf(manifest)) {
    const file = contents.byDigest(digest);
    if (file && file.sizeBytes !== size)
      throw badArchive(`has ${file.sizeBytes} bytes of ${digest}, but its manifest says ${size}`);
  }
}

/** Checks that an image's config and layers match. Engines verify the content of compressed layers when they unpack them. */
async function checkLayers({ context, contents }: Storing, manifest: Manifest): Promise<void> {
  const digest = manifest.config?.digest ?? '';
  const file = contents.byDigest(digest);
  if (!file) return;
  if (file.sizeBytes > maxConfigBytes) throw badArchive(`has a config of more than ${maxConfigBytes} bytes`);
  const diffIds = diffIdsOf(digest, await readBlob(context.blobs, digest));
  const { layers } = manifest;
  if (diffIds.length !== layers.length) {
    throw badArchive(`has ${layers.length} layers, but the config ${digest} lists ${diffIds.length}`);
  }
  layers.forEach((layer, i) => {
    if (isPlainTar(layer) && layer.digest !== diffIds[i]) {
      throw badArchive(`has the layer ${layer.digest} in place of ${diffIds[i]}`);
    }
  });
}

function diffIdsOf(digest: string, bytes: Buffer): readonly string[] {
  try {
    return config.parse(JSON.parse(bytes.toString('utf8'))).rootfs?.diff_ids ?? [];
  } catch (error) {
    throw badArchive(`has a config that cannot be understood: ${digest}`, error);
  }
}

function isPlainTar({ mediaType, digest }: Descriptor): boolean {
  return mediaType.endsWith('.tar') && digest.startsWith('sha256:');
}

async function bytesOf({ context, contents }: Storing, digest: string): Promise<Buffer> {
  const bytes = await readManifestBlob(context, contents, digest);
  if (!bytes) throw new Error(`The manifest ${digest} was in the archive before`);
  return bytes;
}
