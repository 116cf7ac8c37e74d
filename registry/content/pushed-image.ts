/** Records a pushed manifest as an image, for the rest of the platform. */
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { imageId, images } from '../../model/image.ts';
import type { GitCommit, Image } from '../../model/image.ts';
import { services, withImage } from '../../model/service.ts';
import { linkedBlobSize } from './blob-links.ts';
import type { ContentContext } from '../context.ts';
import { contentId, manifests, tagId, tags } from './documents.ts';
import { imageConfigTypes, maxIndexDepth, parseManifest } from './manifest.ts';
import type { Descriptor, Manifest } from './manifest.ts';

/** Configs have a few kilobytes; labels of larger ones are ignored. */
export const maxConfigBytes = 4 * 1024 * 1024;

/** Images use Go's names of architectures; these differ in Node. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

type Labels = Readonly<Record<string, unknown>>;

/** Enough for a git hash (SHA-256: 64), a branch, a commit message, and a URL. */
const maxLengths = { hash: 128, branch: 255, message: 4096, repository: 2048 } as const;

/** The labels of each field: those of existing push tools, then the OCI's annotations. */
const labelNames = {
  hash: ['hash', 'org.opencontainers.image.revision'],
  branch: ['branch', 'org.opencontainers.image.ref.name'],
  message: ['message'],
  repository: ['repository', 'org.opencontainers.image.source'],
} as const;

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
  /** From the tag's document, so that tags and images have the same order. */
  readonly pushedAt: Date;
}

/**
 * Records a pushed tag as an image, and as the service's last image, if a container can run it. After a crash between the two,
 * repeating the push repairs it.
 */
export async function recordImage(context: ContentContext, pushed: PushedTag): Promise<void> {
  const { repository, tag, digest, pushedAt } = pushed;
  const id = imageId(repository, tag, digest);
  const properties = await readProperties(context, pushed);
  if (!properties) return;
  await upsert(context.store, images, id, (current) => ({
    id,
    repository,
    tag,
    digest,
    uploadTime: current && current.uploadTime > pushedAt ? current.uploadTime : pushedAt,
    ...properties,
  }));
  await context.store.update(services, repository, (service) =>
    service.lastImageUploadTime !== undefined && service.lastImageUploadTime > pushedAt
      ? service
      : withImage(service, digest, pushedAt),
  );
  // The tag may have been deleted meanwhile, with its images so far.
  if (await context.store.get(tags, tagId(repository, tag))) return;
  await context.store.delete(images, id, ({ uploadTime }) => uploadTime.getTime() === pushedAt.getTime());
}

/** The properties of the image for this node's platform. */
async function readProperties(
  context: ContentContext,
  { repository, manifest }: PushedTag,
): Promise<Pick<Image, 'sizeBytes' | 'platform' | 'gitCommit'> | undefined> {
  const image = await resolveImage(context.store, repository, manifest);
  if (!image?.config || !imageConfigTypes.includes(image.config.mediaType)) return undefined;
  const config = await readConfig(context, repository, image.config);
  const sizeBytes = [image.config, ...image.layers].reduce((sum, { size }) => sum + size, 0);
  const gitCommit = gitCommitOf([config?.config?.Labels ?? {}, image.annotations, manifest.annotations]);
  return {
    sizeBytes,
    ...(config?.os &&
      config.architecture && { platform: `${config.os}/${config.architecture}`.slice(0, 128).toWellFormed() }),
    ...(gitCommit && { gitCommit }),
  };
}

/** Returns an image's manifest as it is; of an index, the child for this node's platform, or else the first child. */
export async function resolveImage(
  store: Store,
  repository: string,
  manifest: Manifest,
  depth = 0,
): Promise<Manifest | undefined> {
  if (manifest.kind !== 'index') return manifest;
  if (depth === maxIndexDepth) return undefined;
  const children = manifest.manifests.filter((child) => !isAttestation(child));
  const child = children.find(isForThisNode) ?? children[0];
  const stored = child && (await store.get(manifests, contentId(repository, child.digest)));
  if (!stored) return undefined;
  return await resolveImage(store, repository, parseManifest(stored.bytes, stored.mediaType), depth + 1);
}

/** BuildKit stores attestations beside the image, for the platform `unknown/unknown`. */
function isAttestation({ platform, annotations }: Descriptor): boolean {
  return platform?.architecture === 'unknown' || annotations?.['vnd.docker.reference.type'] === 'attestation-manifest';
}

function isForThisNode({ platform }: Descriptor): boolean {
  return platform?.os === 'linux' && platform.architecture === (architectures[process.arch] ?? process.arch);
}

/** The config of an image. `undefined` if it is invalid: clients may push anything. */
async function readConfig(
  context: ContentContext,
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

/** The git commit in an image's labels. Each field comes from the first source that has it. `undefined` if none has any. */
function gitCommitOf(sources: readonly Labels[]): GitCommit | undefined {
  const commit: { -readonly [Field in keyof GitCommit]: GitCommit[Field] } = {};
  for (const field of ['hash', 'branch', 'message', 'repository'] as const) {
    const value = firstText(sources, labelNames[field]);
    if (value !== undefined) commit[field] = value.slice(0, maxLengths[field]).toWellFormed();
  }
  return Object.keys(commit).length > 0 ? commit : undefined;
}

function firstText(sources: readonly Labels[], names: readonly string[]): string | undefined {
  const values = sources.flatMap((source) =>
    names.map((name) => (Object.hasOwn(source, name) ? source[name] : undefined)),
  );
  return values.find((value): value is string => typeof value === 'string' && value !== '');
}

/** Reads a small blob into memory. */
export async function readBlob(blobs: Blobs, digest: string): Promise<Buffer> {
  const bytes = await blobs.read(digest);
  return bytes ? await buffer(bytes) : Buffer.alloc(0);
}
