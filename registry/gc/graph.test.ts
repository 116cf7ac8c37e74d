import { expect, test } from 'vitest';
import { Graph } from './graph.ts';
import type { Node } from './graph.ts';

/** A manifest, pushed after those created before. */
let pushes = 0;
function node(digest: string, about: Partial<Node> = {}): Node {
  const pushedAt = new Date((pushes += 1));
  return {
    digest,
    sizeBytes: 1,
    pushedAt,
    usedAt: pushedAt,
    references: [],
    kind: 'image',
    ...about,
  };
}

function marked(graph: Graph, ...digests: string[]): string[] {
  const found = new Set<string>();
  graph.mark(digests, found);
  return [...found].toSorted();
}

test('an image keeps its config and layers, and no content of another image', () => {
  const graph = new Graph([
    node('a', { references: ['config-a', 'layer', 'layer-a'] }),
    node('b', { references: ['config-b', 'layer', 'layer-b'] }),
  ]);
  expect(marked(graph, 'a')).toEqual(['a', 'config-a', 'layer', 'layer-a']);
});

test('an index keeps its children, whether they are manifests, indexes or blobs', () => {
  const graph = new Graph([
    node('index', { kind: 'index', references: ['nested', 'child', 'cache-layer'] }),
    node('nested', { kind: 'index', references: ['grandchild'] }),
    node('child', { references: ['layer'] }),
    node('grandchild', { references: ['deep-layer'] }),
  ]);
  const all = ['cache-layer', 'child', 'deep-layer', 'grandchild', 'index', 'layer', 'nested'];
  expect(marked(graph, 'index')).toEqual(all);
  expect(marked(graph, 'child')).toEqual(['child', 'layer']);
});

test('a manifest keeps its referrers and their content, to any depth', () => {
  const graph = new Graph([
    node('image'),
    node('signature', { subject: 'image', references: ['signature-layer'] }),
    node('stamp', { subject: 'signature' }),
    node('of-nothing', { subject: 'absent' }),
    node('of-nothing-too', { subject: 'absent' }),
  ]);
  expect(marked(graph, 'image')).toEqual(['image', 'signature', 'signature-layer', 'stamp']);
  expect(marked(graph, 'of-nothing')).toEqual(['of-nothing']);
});

test('a manifest that is kept keeps its subject', () => {
  const graph = new Graph([node('image', { references: ['layer'] }), node('signature', { subject: 'image' })]);
  expect(marked(graph, 'signature')).toEqual(['image', 'layer', 'signature']);
});

test('circular references are followed once', () => {
  const graph = new Graph([node('a', { subject: 'b' }), node('b', { subject: 'c' }), node('c', { subject: 'a' })]);
  expect(marked(graph, 'b')).toEqual(['a', 'b', 'c']);
  expect(
    graph
      .garbage(new Set())
      .map(({ digest }) => digest)
      .toSorted(),
  ).toEqual(['a', 'b', 'c']);
});

test('the last untagged images contain no children, referrers, build caches or other artifacts', () => {
  const graph = new Graph([
    node('first'),
    node('second'),
    node('child'),
    node('index', { kind: 'index', references: ['child', 'attestation'] }),
    node('attestation', { kind: 'other' }),
    node('cache', { kind: 'index', references: ['cache-layer'] }),
    node('chart', { kind: 'other' }),
    node('signature', { subject: 'first' }),
    node('tagged'),
    node('last'),
  ]);
  const tagged = new Set(['tagged']);
  expect(graph.lastUntagged(10, tagged)).toEqual(['last', 'index', 'second', 'first']);
  expect(graph.lastUntagged(2, tagged)).toEqual(['last', 'index']);
  expect(graph.lastUntagged(0, tagged)).toEqual([]);
});

test('manifests are deleted before the manifests that they keep alive', () => {
  const graph = new Graph([
    node('grandchild'),
    node('nested', { kind: 'index', references: ['grandchild'] }),
    node('signature', { subject: 'index' }),
    node('index', { kind: 'index', references: ['nested', 'child', 'child'] }),
    node('child'),
    node('kept'),
  ]);
  const order = graph.garbage(new Set(['kept'])).map(({ digest }) => digest);
  expect(order.toSorted()).toEqual(['child', 'grandchild', 'index', 'nested', 'signature']);
  for (const [first, then] of [
    ['index', 'nested'],
    ['index', 'child'],
    ['index', 'signature'],
    ['nested', 'grandchild'],
  ] as const) {
    expect(order.indexOf(first)).toBeLessThan(order.indexOf(then));
  }
});

test('long chains do not overflow the stack', () => {
  const chain = Array.from({ length: 50_000 }, (_, i) => node(`${i}`, { subject: `${i - 1}`, references: [] }));
  const graph = new Graph(chain);
  expect(marked(graph, '0')).toHaveLength(50_000);
  expect(graph.garbage(new Set())[0]?.digest).toBe('0');
});
