/** What keeps what alive in a repository. Pure, so that its rules can be tested without a store. */
import type { StoredManifest } from '../content/documents.ts';

/** A manifest, as far as it matters here. */
export type Node = Pick<
  StoredManifest,
  'digest' | 'sizeBytes' | 'pushedAt' | 'usedAt' | 'references' | 'subject' | 'kind'
>;

/** The manifests of a repository, by digest. */
export class Graph {
  readonly nodes: ReadonlyMap<string, Node>;
  /** Manifests by the digest of their subject. */
  readonly #referrers = new Map<string, Node[]>();
  readonly #parents = new Map<string, Node[]>();

  constructor(nodes: Iterable<Node>) {
    this.nodes = new Map(Array.from(nodes, (node) => [node.digest, node]));
    for (const node of this.nodes.values()) {
      if (node.subject !== undefined) addTo(this.#referrers, node.subject, node);
      for (const reference of node.references) if (this.nodes.has(reference)) addTo(this.#parents, reference, node);
    }
  }

  /**
   * Marks what these digests keep alive, themselves included: what a manifest is made of, what refers to it, and what it
   * refers to. Manifests and blobs are marked alike: a child of an index may be either.
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
      // An absent subject is nothing that anybody could be kept alive by.
      if (node.subject !== undefined && this.nodes.has(node.subject)) open.push(node.subject);
    }
  }

  /** The untagged images that were pushed last. What is part of an index or refers to something is no image of its own. */
  lastUntagged(count: number, tagged: ReadonlySet<string>): string[] {
    const untagged = [...this.nodes.values()].filter(
      (node) => !tagged.has(node.digest) && !this.#parents.has(node.digest) && this.#isImage(node),
    );
    untagged.sort((a, b) => b.pushedAt.getTime() - a.pushedAt.getTime() || (a.digest < b.digest ? -1 : 1));
    return untagged.slice(0, count).map(({ digest }) => digest);
  }

  /**
   * The manifests that are not marked, in an order in which they can be deleted: what keeps others alive goes before them. If
   * it turns out not to go, they have not gone either.
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
    // An index that refers to its own child, or the like: there is no order.
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

/** A manifest without its bytes. */
export function nodeOf(stored: StoredManifest): Node {
  const { digest, sizeBytes, pushedAt, usedAt, references, subject, kind } = stored;
  return { digest, sizeBytes, pushedAt, usedAt, references, ...(subject !== undefined && { subject }), kind };
}

function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
