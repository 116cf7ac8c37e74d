/**
 * Collecting in one repository. What is kept: tags, the untagged images pushed last, what environments spawn, what backends
 * run, what is leased, and all that these keep alive. The rest goes, what keeps others alive before them, and each document
 * only if nobody has used it since it was read. In a repository whose service is gone, nothing is kept but what is leased.
 */
import { backends } from '../../model/backend.ts';
import { images, isUsedSince } from '../../model/image.ts';
import { services } from '../../model/service.ts';
import type { Service } from '../../model/service.ts';
import { blobLinks, manifestBatchSize, manifests, ofRepository, tags } from '../content/documents.ts';
import type { StoredTag } from '../content/documents.ts';
import type { Collecting } from './collecting.ts';
import { removeManifest, removeNames } from '../content/removal.ts';
import { Graph, nodeOf } from './graph.ts';
import type { Node } from './graph.ts';

/** What went from a repository, or would go. */
interface Collected {
  readonly repository: string;
  readonly manifests: number;
  readonly tags: number;
  readonly links: number;
  /** Of manifests and of blobs. Bytes of a blob stay for as long as another repository has it. */
  readonly bytes: number;
  /** The blobs whose links went. */
  readonly digests: readonly string[];
}

/** A repository's names for content, and what they keep. */
interface Kept {
  readonly graph: Graph;
  /** Digests of manifests and blobs. */
  readonly marked: Set<string>;
  /** The tags of a service that is gone, which nobody can see. `undefined` if the service is there. */
  readonly lostTags: readonly StoredTag[] | undefined;
}

/** Deletes what nothing keeps in a repository. */
export async function collectRepository(collecting: Collecting, repository: string): Promise<Collected> {
  const { graph, marked, lostTags } = await markKept(collecting, repository);
  let count = 0;
  let bytes = 0;
  if (lostTags && !collecting.isDry) await removeNames(collecting.store, repository, collecting.before);
  for (const node of graph.garbage(marked)) {
    collecting.signal.throwIfAborted();
    // By then something may be known to be alive that keeps it.
    if (marked.has(node.digest)) continue;
    if (await dropManifest(collecting, repository, node)) {
      count += 1;
      bytes += node.sizeBytes;
    } else {
      graph.mark([node.digest], marked);
    }
  }
  const links = await dropLinks(collecting, repository, marked);
  return {
    repository,
    manifests: count,
    tags: lostTags?.length ?? 0,
    links: links.digests.length,
    bytes: bytes + links.bytes,
    digests: links.digests,
  };
}

async function markKept(collecting: Collecting, repository: string): Promise<Kept> {
  const { store, before, settings, yielder, signal } = collecting;
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
  // Read after the manifests, so that it is as new as can be.
  const service = await store.get(services, repository);
  const found: StoredTag[] = [];
  for await (const tag of store.scan(tags, ofRepository(repository))) found.push(tag);
  if (!service) return { graph, marked, lostTags: found.filter(({ pushedAt }) => pushedAt < before) };
  const tagged = new Map(found.map(({ tag, digest }) => [tag, digest]));
  graph.mark(tagged.values(), marked);
  graph.mark(environmentDigests(service, tagged), marked);
  graph.mark(graph.lastUntagged(settings.keptUntaggedImages, new Set(tagged.values())), marked);
  // Most repositories have no garbage, and need not be asked for.
  if (nodes.some(({ digest }) => !marked.has(digest))) graph.mark(await runningDigests(collecting, service), marked);
  return { graph, marked, lostTags: undefined };
}

function environmentDigests({ environments }: Service, tagged: ReadonlyMap<string, string>): string[] {
  return environments.map(({ imageTag }) => tagged.get(imageTag) ?? imageTag);
}

/** A backend that has begun may still have to fetch its image, on this node or another one. */
async function runningDigests({ store }: Collecting, { account, name }: Service): Promise<string[]> {
  const live = await store.find(backends, { index: 'byAccount', equals: { account, live: true } });
  return live.filter(({ service }) => service === name).map(({ imageDigest }) => imageDigest);
}

/**
 * Deletes a manifest with its names, unless it was used since it was read. One that was just chosen to run stays, before its
 * backend or environment could be seen (`chooseImage`), and so does one that was just tagged.
 *
 * @returns whether it was deleted, or would be.
 */
async function dropManifest(
  { store, isDry, before }: Collecting,
  repository: string,
  { digest, usedAt }: Node,
): Promise<boolean> {
  const names = await store.find(images, { index: 'byDigest', equals: { repository, digest } });
  if (names.some((image) => isUsedSince(image, before))) return false;
  if (isDry) return true;
  const content = { repository, digest };
  return await removeManifest(store, content, {
    image: (image) => !isUsedSince(image, before),
    tag: () => false,
    manifest: (current) => current.usedAt.getTime() === usedAt.getTime(),
  });
}

async function dropLinks(
  { store, isDry, before, yielder, signal }: Collecting,
  repository: string,
  marked: ReadonlySet<string>,
): Promise<{ digests: string[]; bytes: number }> {
  const digests: string[] = [];
  let bytes = 0;
  for await (const { id, digest, sizeBytes, usedAt } of store.scan(blobLinks, ofRepository(repository))) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    if (marked.has(digest) || usedAt >= before) continue;
    const isUnused = isDry || (await store.delete(blobLinks, id, (link) => link.usedAt.getTime() === usedAt.getTime()));
    if (!isUnused) continue;
    digests.push(digest);
    bytes += sizeBytes;
  }
  return { digests, bytes };
}
