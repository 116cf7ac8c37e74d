/** Finds the images in an archive: in an OCI layout, or in an archive of `docker save`. */
import { z } from 'zod';
import { digestPattern } from '../../contract/names.ts';
import type { ContentContext } from '../context.ts';
import { digestOfBytes } from '../content/digests.ts';
import { indexMediaType, maxManifestBytes, parseManifest } from '../content/manifest.ts';
import type { Descriptor } from '../content/manifest.ts';
import { readBlob } from '../content/pushed-image.ts';
import { RegistryError } from '../errors.ts';
import type { ArchiveImage, ImageSelector } from './image-selector.ts';
import type { ArchiveContents, ArchiveFile } from './archive-contents.ts';
import { badArchive } from './api-errors.ts';

/** The manifest of an image, with the media type under which it is pushed. */
export interface Root {
  readonly digest: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Reads the manifest of the selected image, or creates it. */
export type FindRoot = () => Promise<Root>;

const manifestMediaType = 'application/vnd.oci.image.manifest.v1+json';
const configMediaType = 'application/vnd.oci.image.config.v1+json';
const layerMediaType = 'application/vnd.oci.image.layer.v1.tar';

/** The annotations in which tools write the name of an image: containerd and Docker, then the OCI. */
const nameAnnotations = ['io.containerd.image.name', 'org.opencontainers.image.ref.name'] as const;

/** `manifest.json` of `docker save`: the config, tags and layers of each image. */
const savedImages = z.array(
  z.object({
    Config: z.string(),
    RepoTags: z.array(z.string()).nullish(),
    Layers: z.array(z.string()).nullish(),
  }),
);

/**
 * Lists the images. Newer engines save both forms in one archive; then the layout is used, because it has the image's own
 * manifest. A nested image of a layout can be selected by its digest.
 */
export function imagesIn(
  context: ContentContext,
  contents: ArchiveContents,
  { image }: ImageSelector,
): ArchiveImage<FindRoot>[] {
  const index = contents.documents.get('index.json');
  if (index && contents.documents.get('oci-layout')) {
    const listed = imagesInLayout(context, contents, index);
    const [digest = ''] = digestPattern.exec(image ?? '') ?? [];
    const isNested = listed.every((each) => each.digest !== digest) && contents.byDigest(digest);
    return isNested ? [{ digest, names: [], root: () => nestedRoot(context, contents, digest) }] : listed;
  }
  const saved = contents.documents.get('manifest.json');
  if (saved) return imagesInSaved(context, contents, saved);
  throw badArchive('is neither of `docker save` (manifest.json) nor an OCI layout (oci-layout, index.json)');
}

/** Reads a manifest of the archive. `undefined` if the archive lacks it. Throws `BadRequest`. */
export async function readManifestBlob(
  { blobs }: ContentContext,
  contents: ArchiveContents,
  digest: string,
): Promise<Buffer | undefined> {
  const file = contents.byDigest(digest);
  if (!file) return undefined;
  if (file.sizeBytes > maxManifestBytes) throw badArchive(`has a manifest of more than ${maxManifestBytes} bytes`);
  return await readBlob(blobs, digest);
}

function imagesInLayout(
  context: ContentContext,
  contents: ArchiveContents,
  index: Uint8Array,
): ArchiveImage<FindRoot>[] {
  return parsed('index.json', () => parseManifest(index, indexMediaType)).manifests.map((descriptor) => ({
    digest: descriptor.digest,
    names: namesOf(descriptor),
    root: async () => {
      const { digest, mediaType, size } = descriptor;
      const bytes = await readManifestBlob(context, contents, digest);
      if (!bytes) throw badArchive(`lacks ${digest}, which its index.json names`);
      if (bytes.length !== size)
        throw badArchive(`has ${bytes.length} bytes of ${digest}, but its index.json says ${size}`);
      return { digest, mediaType, bytes };
    },
  }));
}

/** A nested manifest, whose `mediaType` field gives its type. */
async function nestedRoot(context: ContentContext, contents: ArchiveContents, digest: string): Promise<Root> {
  const bytes = (await readManifestBlob(context, contents, digest)) ?? Buffer.alloc(0);
  const { mediaType } = parsed(digest, () => parseManifest(bytes, undefined));
  return { digest, mediaType, bytes };
}

function namesOf({ annotations }: Descriptor): string[] {
  const name = nameAnnotations.map((key) => annotations?.[key]).find((value) => value !== undefined);
  return name === undefined ? [] : [name];
}

function imagesInSaved(
  context: ContentContext,
  contents: ArchiveContents,
  saved: Uint8Array,
): ArchiveImage<FindRoot>[] {
  const images = parsed('manifest.json', () => savedImages.parse(JSON.parse(Buffer.from(saved).toString('utf8'))));
  return images.map(({ Config, RepoTags, Layers }) => {
    const config = contents.file(Config);
    return {
      digest: config.digest,
      names: RepoTags ?? [],
      root: async () =>
        makeManifest(
          config,
          (Layers ?? []).map((name) => contents.file(name)),
        ),
    };
  });
}

/** Creates the manifest of an image that was saved without one. The same image has the same bytes, so it is stored once. */
function makeManifest(config: ArchiveFile, layers: readonly ArchiveFile[]): Root {
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestMediaType,
    config: { mediaType: configMediaType, digest: config.digest, size: config.sizeBytes },
    layers: layers.map(({ digest, sizeBytes, compression }) => ({
      mediaType: compression === 'none' ? layerMediaType : `${layerMediaType}+${compression}`,
      digest,
      size: sizeBytes,
    })),
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return { digest: digestOfBytes(bytes, 'sha256'), mediaType: manifestMediaType, bytes };
}

/** Names the document of the archive in errors. */
function parsed<T>(name: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw badArchive(`has a ${name} that cannot be understood (${explain(error)})`, error);
  }
}

function explain(error: unknown): string {
  if (error instanceof RegistryError) return error.detail ?? error.message;
  if (error instanceof z.ZodError)
    return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)[0] ?? '';
  return error instanceof Error ? error.message : String(error);
}
