/** Determines which content of a repository keeps other content alive. Pure, so that the rules can be tested without a store. */
import type { StoredManifest } from '../content/documents.ts';

/** A manifest without its bytes. */
export type Node = Pick<
  StoredManifest,
  'digest' | 'sizeBytes' | 'pushedAt' | 'usedAt' | 'references' | 'subject' | 'kind'
>;

/** The manifests of a repository, by digest. */
export class Graph {
  readonly nodes: ReadonlyMap<string, Node>;
  /** Manifests by the digest of their subject. */
  readonly #referrers: ReadonlyMap<string | undefined, readonly Node[]>;
  /** The digests of everything that any manifest consists of. */
  readonly #parts: ReadonlySet<string>;

  constructor(nodes: readonly Node[]) {
    this.nodes = new Map(nodes.map((node) => [node.digest, node]));
    this.#referrers = Map.groupBy(nodes, ({ subject }) => subject);
    this.#parts = new Set(nodes.flatMap(({ references }) => references));
  }

  /**
   * Marks everything that these digests keep alive, themselves included: the parts of a manifest, its referrers, and its subject.
   * Manifests and blobs are marked alike: a child of an index may be either.
   */
  mark(digests: Iterable<string>, marked: Set<string>): void {
    const open = [...digests];
    for (let digest = open.pop(); digest !== undefined; digest = open.pop()) {
      if (marked.has(digest)) continue;
      marked.add(digest);
      const node = this.nodes.get(digest);
      if (!node) continue;
      for (const reference of node.references) open.push(reference);
      for (const referrer of this.#referrers.get(digest) ?? []) open.push(referrer.digest);
      // Other referrers of an absent subject are not kept alive through it.
      if (node.subject !== undefined && this.nodes.has(node.subject)) open.push(node.subject);
    }
  }

  /** The untagged images that were pushed last. Children of an index and referrers do not count as images. */
  lastUntagged(count: number, tagged: ReadonlySet<string>): string[] {
    const untagged = [...this.nodes.values()].filter(
      (node) => !tagged.has(node.digest) && !this.#parts.has(node.digest) && this.#isImage(node),
    );
    untagged.sort((a, b) => b.pushedAt.getTime() - a.pushedAt.getTime() || (a.digest < b.digest ? -1 : 1));
    return untagged.slice(0, count).map(({ digest }) => digest);
  }

  /**
   * The manifests that are not marked, in the order of deletion: a manifest comes before the manifests that it keeps alive. If it
   * turns out to be in use, they have not been deleted yet.
   */
  garbage(marked: ReadonlySet<string>): Node[] {
    const waiting = new Map<Node, number>();
    for (const node of this.nodes.values()) {
      if (!marked.has(node.digest)) waiting.set(node, 0);
    }
    for (const node of waiting.keys()) {
      for (const kept of this.#keptBy(node)) {
        const count = waiting.get(kept);
        if (count !== undefined) waiting.set(kept, count + 1);
      }
    }
    const order: Node[] = [];
    const free = [...waiting].flatMap(([node, count]) => (count === 0 ? [node] : []));
    for (let node = free.pop(); node; node = free.pop()) {
      order.push(node);
      waiting.delete(node);
      for (const kept of this.#keptBy(node)) {
        const count = waiting.get(kept);
        if (count === undefined) continue;
        waiting.set(kept, count - 1);
        if (count === 1) free.push(kept);
      }
    }
    // Manifests that refer to each other in a circle have no order.
    return [...order, ...waiting.keys()];
  }

  #keptBy(node: Node): Node[] {
    const parts = node.references.flatMap((reference) => this.nodes.get(reference) ?? []);
    return [...parts, ...(this.#referrers.get(node.digest) ?? [])];
  }

  #isImage(node: Node): boolean {
    if (node.subject !== undefined || node.kind === 'other') return false;
    if (node.kind === 'image') return true;
    // A build cache is an index too, of blobs.
    return node.references.some((reference) => (this.nodes.get(reference)?.kind ?? 'other') !== 'other');
  }
}

/** Leaves out the bytes: a repository has many manifests. */
export function nodeOf(stored: StoredManifest): Node {
  const { digest, sizeBytes, pushedAt, usedAt, references, subject, kind } = stored;
  return { digest, sizeBytes, pushedAt, usedAt, references, ...(subject !== undefined && { subject }), kind };
}
