/** From a pushed manifest to what the rest of the platform knows of it: an image, and the service's last one. */
import { z } from 'zod';
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { imageId, images } from '../../model/image.ts';
import type { Image } from '../../model/image.ts';
import { services, withImage } from '../../model/service.ts';
import { linkedBlobSize } from './blob-links.ts';
import type { RegistryContext } from '../context.ts';
import { contentId, manifests } from './documents.ts';
import { gitCommitOf } from './git-commit.ts';
import { imageConfigTypes, parseManifest } from './manifest.ts';
import type { Descriptor, Manifest } from './manifest.ts';

/** Configs are a few kilobytes; labels beyond this are not looked for. */
export const maxConfigBytes = 4 * 1024 * 1024;

/** An index of indexes is rare; deeper ones are built to hurt. */
const maxDepth = 4;

/** Go's names, which images use, for Node's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

const imageConfig = z.object({
  os: z.string().nullish(),
  architecture: z.string().nullish(),
  config: z.object({ Labels: z.record(z.string(), z.unknown()).nullish() }).nullish(),
});

interface PushedTag {
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
  readonly manifest: Manifest;
  /** From the tag's document: tags and images are ordered alike. */
  readonly pushedAt: Date;
}

/**
 * Makes a pushed tag an image, and the service's last image, if a container can be made of it. Repeating the push mends a
 * crash between the two.
 */
export async function noteImage(context: RegistryContext, pushed: PushedTag): Promise<void> {
  const { repository, tag, digest, pushedAt } = pushed;
  const id = imageId(repository, tag, digest);
  const facts = await readFacts(context, pushed);
  if (!facts) return;
  await upsert(context.store, images, id, (current) => ({
    id,
    repository,
    tag,
    digest,
    uploadTime: current && current.uploadTime > pushedAt ? current.uploadTime : pushedAt,
    ...facts,
  }));
  await context.store.update(services, repository, (service) =>
    service.lastImageUploadTime !== undefined && service.lastImageUploadTime > pushedAt
      ? service
      : withImage(service, digest, pushedAt),
  );
}

/** What the image for this node's platform says of itself. */
async function readFacts(
  context: RegistryContext,
  { repository, manifest }: PushedTag,
): Promise<Pick<Image, 'sizeBytes' | 'platform' | 'gitCommit'> | undefined> {
  const image = await resolveImage(context.store, repository, manifest);
  if (!image?.config || !imageConfigTypes.includes(image.config.mediaType)) return undefined;
  const config = await readConfig(context, repository, image.config);
  const sizeBytes = [image.config, ...image.layers].reduce((sum, { size }) => sum + size, 0);
  const gitCommit = gitCommitOf([config?.config?.Labels ?? {}, image.annotations, manifest.annotations]);
  return {
    sizeBytes,
    ...(config?.os && config.architecture && { platform: `${config.os}/${config.architecture}`.slice(0, 128) }),
    ...(gitCommit && { gitCommit }),
  };
}

/** The manifest itself, or of an index the child for this node's platform, or the first that is an image. */
export async function resolveImage(
  store: Store,
  repository: string,
  manifest: Manifest,
  depth = 0,
): Promise<Manifest | undefined> {
  if (manifest.kind !== 'index') return manifest;
  if (depth === maxDepth) return undefined;
  const children = manifest.manifests.filter((child) => !isAttestation(child));
  const child = children.find(isForThisNode) ?? children[0];
  const stored = child && (await store.get(manifests, contentId(repository, child.digest)));
  if (!stored) return undefined;
  return await resolveImage(store, repository, parseManifest(stored.bytes, stored.mediaType), depth + 1);
}

/** BuildKit puts what it attests beside the image, for the platform `unknown/unknown`. */
function isAttestation({ platform, annotations }: Descriptor): boolean {
  return platform?.architecture === 'unknown' || annotations?.['vnd.docker.reference.type'] === 'attestation-manifest';
}

function isForThisNode({ platform }: Descriptor): boolean {
  return platform?.os === 'linux' && platform.architecture === (architectures[process.arch] ?? process.arch);
}

/** The config of an image, as far as it can be read: whoever pushed it may have pushed nonsense. */
async function readConfig(
  context: RegistryContext,
  repository: string,
  { digest }: Descriptor,
): Promise<z.infer<typeof imageConfig> | undefined> {
  const sizeBytes = await linkedBlobSize(context, repository, digest);
  if (sizeBytes === undefined || sizeBytes > maxConfigBytes) return undefined;
  const text = (await readBlob(context.blobs, digest)).toString('utf8');
  try {
    return imageConfig.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The content of a small blob. */
export async function readBlob(blobs: Blobs, digest: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await blobs.read(digest)) ?? []) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}
