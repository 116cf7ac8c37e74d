/**
 * Garbage collection in one repository. It keeps tags, the untagged images pushed last, images that environments spawn or backends
 * run, leased content, and everything that these keep alive. It deletes the rest: content before the content that it keeps alive,
 * and each document only if it was not used since it was read. In a repository without a service, it keeps only leased content.
 */
import { backends } from '../../model/backend.ts';
import { images, isUsedSince } from '../../model/image.ts';
import { findService } from '../../model/service.ts';
import type { Service } from '../../model/service.ts';
import { blobLinks, manifestBatchSize, manifests, ofRepository, tags } from '../content/documents.ts';
import type { StoredTag } from '../content/documents.ts';
import { removeManifest, removeNames } from '../content/removal.ts';
import type { GcRun } from './gc-run.ts';
import { Graph, nodeOf } from './graph.ts';
import type { Node } from './graph.ts';

/** What was deleted from a repository, or would be in a dry run. */
interface Swept {
  readonly manifests: number;
  readonly tags: number;
  /** Of manifests and of blobs. The bytes of a blob stay while another repository links to it. */
  readonly bytes: number;
  /** The blobs whose links were deleted. */
  readonly digests: readonly string[];
}

interface Kept {
  readonly graph: Graph;
  /** Digests of manifests and blobs. */
  readonly marked: Set<string>;
  /** Invisible tags of a deleted service. `undefined` if the service exists. */
  readonly lostTags: readonly StoredTag[] | undefined;
}

/** Deletes the garbage of a repository. */
export async function sweepRepository(run: GcRun, repository: string): Promise<Swept> {
  const { graph, marked, lostTags } = await markKept(run, repository);
  let count = 0;
  let bytes = 0;
  if (lostTags && run.lease) await removeNames(run.store, repository, run.before);
  for (const node of graph.garbage(marked)) {
    run.signal.throwIfAborted();
    // A manifest that turned out to be in use keeps this one.
    if (marked.has(node.digest)) continue;
    if (await dropManifest(run, repository, node)) {
      count += 1;
      bytes += node.sizeBytes;
    } else {
      graph.mark([node.digest], marked);
    }
  }
  const links = await dropLinks(run, repository, marked);
  return { manifests: count, tags: lostTags?.length ?? 0, bytes: bytes + links.bytes, digests: links.digests };
}

async function markKept(run: GcRun, repository: string): Promise<Kept> {
  const { store, before, gc, yielder, signal } = run;
  const nodes: Node[] = [];
  for await (const stored of store.scan(manifests, { ...ofRepository(repository), batchSize: manifestBatchSize })) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    nodes.push(nodeOf(stored));
  }
  const graph = new Graph(nodes);
  const marked = new Set<string>();
  graph.mark(
    nodes.filter(({ usedAt }) => usedAt >= before).map(({ digest }) => digest),
    marked,
  );
  // Read after the manifests, so that it is as recent as possible.
  const service = await findService(store, repository);
  const found = await Array.fromAsync(store.scan(tags, ofRepository(repository)));
  if (!service) return { graph, marked, lostTags: found.filter(({ pushedAt }) => pushedAt < before) };
  const tagged = new Map(found.map(({ tag, digest }) => [tag, digest]));
  graph.mark(tagged.values(), marked);
  graph.mark(environmentDigests(service, tagged), marked);
  graph.mark(graph.lastUntagged(gc.keptUntaggedImages, new Set(tagged.values())), marked);
  // Most repositories have no garbage, so the backends need not be read.
  if (nodes.some(({ digest }) => !marked.has(digest))) graph.mark(await runningDigests(run, service), marked);
  return { graph, marked, lostTags: undefined };
}

function environmentDigests({ environments }: Service, tagged: ReadonlyMap<string, string>): string[] {
  return environments.map(({ imageTag }) => tagged.get(imageTag) ?? imageTag);
}

/** The images of live backends, which may still have to be pulled, on this node or another one. */
async function runningDigests({ store }: GcRun, { account, name }: Service): Promise<string[]> {
  const live = await store.find(backends, { index: 'byAccount', equals: { account, live: true } });
  return live.filter(({ service }) => service === name).map(({ imageDigest }) => imageDigest);
}

/**
 * Deletes a manifest with its images, unless it was used since it was read. Keeps a manifest that was just tagged, or just selected
 * to run (`chooseImage`), although its backend or environment is not stored yet.
 *
 * @returns whether it was deleted, or would be.
 */
async function dropManifest(
  { store, lease, before }: GcRun,
  repository: string,
  { digest, usedAt }: Node,
): Promise<boolean> {
  const names = await store.find(images, { index: 'byDigest', equals: { repository, digest } });
  if (names.some((image) => isUsedSince(image, before))) return false;
  if (!lease) return true;
  const content = { repository, digest };
  return await removeManifest(store, content, {
    image: (image) => !isUsedSince(image, before),
    tag: () => false,
    manifest: (current) => current.usedAt.getTime() === usedAt.getTime(),
  });
}

async function dropLinks(
  { store, lease, before, yielder, signal }: GcRun,
  repository: string,
  marked: ReadonlySet<string>,
): Promise<{ digests: string[]; bytes: number }> {
  const digests: string[] = [];
  let bytes = 0;
  for await (const { id, digest, sizeBytes, usedAt } of store.scan(blobLinks, ofRepository(repository))) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    if (marked.has(digest) || usedAt >= before) continue;
    const isUnused =
      !lease || (await store.delete(blobLinks, id, (link) => link.usedAt.getTime() === usedAt.getTime()));
    if (!isUnused) continue;
    digests.push(digest);
    bytes += sizeBytes;
  }
  return { digests, bytes };
}
