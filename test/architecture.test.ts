/** Checks the import rules of ARCHITECTURE.md: what each folder may import, and one folder per vendor's library. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

interface Import {
  readonly file: string;
  readonly target: string;
}

/** The files of this project that each folder may import. */
const mayImport: Readonly<Record<string, RegExp>> = {
  contract: /^contract\//,
  core: /^(?:contract|core)\//,
  model: /^(?:contract|core|model)\//,
  registry: /^(?:contract|core|model|registry)\//,
  api: /^(?:contract|core|model|api)\//,
  worker: /^(?:contract|core|model|worker)\//,
  proxy: /^(?:contract|core|model|proxy)\//,
  main: /^(?:(?:contract|core|model|main)\/|(?:registry|api|worker|proxy|client)\/index\.ts$)/,
  client: /^(?:contract|client)\//,
  cli: /^(?:(?:contract|client|cli)\/|package\.json$)/,
  action: /^(?:contract|client|action)\//,
  setup: /^(?:(?:contract|core|main|setup)\/|client\/index\.ts$)/,
  examples: /^examples\//,
};

/** Folders of components that may import only these other folders of their component. */
const foldersMayImport: Readonly<Record<string, readonly string[]>> = {
  'registry/content': [],
  'registry/archive': ['content'],
  'worker/docker': [],
};

const components = ['model', 'registry', 'api', 'worker', 'proxy'];

/** Drivers of the ports, which only `main/`, drivers of the same port, and tests may import. */
const drivers =
  /^core\/(?:store|blobs|queue|bus)\/(?:sqlite|mongodb|filesystem|gridfs|copies|s3|in-process|bullmq|redis)/;

/** Each vendor's library, and the only files that may import it. */
const vendorFolders: Readonly<Record<string, RegExp>> = {
  mongodb: /^core\/(?:store\/mongodb|blobs\/gridfs)/,
  bullmq: /^core\/queue\//,
  ioredis: /^core\/(?:queue|bus)\//,
  dockerode: /^worker\/docker\//,
  express: /^(?:registry|api)\//,
  'node:sqlite': /^core\/store\/sqlite/,
  multer: /^registry\/archive\//,
  commander: /^cli\//,
  '@commander-js/extra-typings': /^cli\//,
  '@clack/prompts': /^cli\//,
  picocolors: /^cli\//,
};

const sources = globSync('**/*.{ts,js,mjs}', {
  cwd: root,
  exclude: ['node_modules', '.berth', '.git', 'action/dist'],
}).filter((file) => !/^(?:test|bench|docs)\/|\/testing\/|\.test\.ts$/.test(file) && file.includes('/'));

const imports = sources.flatMap(importsOf);

test('the test finds the sources and their imports', () => {
  expect(new Set(sources.map(folderOf)).size).toBeGreaterThanOrEqual(9);
  expect(imports.length).toBeGreaterThan(200);
});

test('every folder with sources has a row in the table', () => {
  expect(sources.filter((file) => !(folderOf(file) in mayImport))).toEqual([]);
});

test('every file imports only what the table allows', () => {
  const inside = imports.filter(({ target }) => !isPackage(target));
  expect(inside.filter(({ file, target }) => !mayImport[folderOf(file)]?.test(target))).toEqual([]);
});

test('in the composition root, only the development server is a client of the platform', () => {
  const clients = imports.filter(({ file, target }) => folderOf(file) === 'main' && target.startsWith('client/'));
  expect(clients.filter(({ file }) => !file.startsWith('main/dev/'))).toEqual([]);
  expect(clients.length).toBeGreaterThan(0);
});

test('components and the model import ports, never drivers', () => {
  expect(imports.filter(({ file, target }) => components.includes(folderOf(file)) && drivers.test(target))).toEqual([]);
});

test.each(['registry', 'api', 'worker'])('the folders of %s do not import each other in a cycle', (component) => {
  expect(cycleAmong(foldersOf(component))).toBeUndefined();
});

test.each(Object.entries(foldersMayImport))(
  '%s imports at most these other folders of its component: %j',
  (path, allowed) => {
    const [component = '', folder = ''] = path.split('/');
    const imported = foldersOf(component).get(folder) ?? new Set();
    expect([...imported].filter((other) => !allowed.includes(other))).toEqual([]);
  },
);

test('the only package that the contract imports is zod, so that it runs in a browser', () => {
  const outside = imports.filter(({ file, target }) => folderOf(file) === 'contract' && isPackage(target));
  expect(new Set(outside.map(({ target }) => packageOf(target)))).toEqual(new Set(['zod']));
});

test('the client imports no package, so that it runs in a browser', () => {
  const outside = imports.filter(({ file, target }) => folderOf(file) === 'client' && isPackage(target));
  expect(outside.filter(({ file }) => file !== 'client/build.ts')).toEqual([]);
});

test('the action imports no package, so that its bundle has no third-party code', () => {
  const outside = imports.filter(({ file, target }) => folderOf(file) === 'action' && isPackage(target));
  const packages = outside.filter(
    ({ file, target }) => file !== 'action/build.ts' && !target.startsWith('package:node:'),
  );
  expect(packages).toEqual([]);
});

test('each vendor library is imported only by its folder', () => {
  const violations = imports.filter(({ file, target }) => {
    const allowed = vendorFolders[packageOf(target)];
    return allowed !== undefined && !allowed.test(file);
  });
  expect(violations).toEqual([]);
});

test('threads load no client for `fetch`, which takes 13 MB in each', () => {
  // Both load the client; a `BroadcastChannel` does with the first message that it receives.
  const loading = /^import (?!type )[^;]*? from 'node:http';|\bnew BroadcastChannel\(/m;
  const parts = ['core', 'model', ...components, 'main', 'setup'];
  const found = sources.filter((file) => parts.includes(folderOf(file)));
  expect(found.filter((file) => loading.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

test('only the entry points of processes read the environment', () => {
  const readers = sources.filter((file) => /\bprocess\.env\b/.test(readFileSync(join(root, file), 'utf8')));
  expect(
    readers.filter((file) => !/^(?:main\/berth\.ts|cli\/berth\.ts|action\/deploy\.ts|setup\/|examples\/)/.test(file)),
  ).toEqual([]);
});

/** The other folders of a component that each of its folders imports. Files beside the folders may import all of them. */
function foldersOf(component: string): ReadonlyMap<string, ReadonlySet<string>> {
  const folderIn = (file: string) => (file.startsWith(`${component}/`) ? file.split('/').slice(1, -1)[0] : undefined);
  const graph = new Map<string, Set<string>>();
  for (const { file, target } of imports) {
    const [from, to] = [folderIn(file), folderIn(target)];
    if (from === undefined || to === undefined || from === to) continue;
    graph.set(from, (graph.get(from) ?? new Set()).add(to));
  }
  return graph;
}

/** Returns a cycle of folders, each of which imports the next. */
function cycleAmong(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const visit = (folder: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    for (const next of graph.get(folder) ?? []) {
      const found = visit(next, [...path, folder]);
      if (found) return found;
    }
    return undefined;
  };
  for (const folder of graph.keys()) {
    const found = visit(folder, []);
    if (found) return found;
  }
  return undefined;
}

function importsOf(file: string): Import[] {
  const code = readFileSync(join(root, file), 'utf8');
  const found = code.matchAll(
    /^(?:import|export)\s(?:[^;'"]*?\sfrom\s)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm,
  );
  return Array.from(found, ([, fixed, dynamic]) => ({ file, target: resolveTarget(file, fixed ?? dynamic ?? '') }));
}

function resolveTarget(file: string, specifier: string): string {
  return specifier.startsWith('.') ? relative(root, join(root, dirname(file), specifier)) : `package:${specifier}`;
}

function isPackage(target: string): boolean {
  return target.startsWith('package:');
}

function packageOf(target: string): string {
  const name = target.replace(/^package:/, '');
  return name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : (name.split('/')[0] ?? '');
}

function folderOf(file: string): string {
  return file.split('/')[0] ?? '';
}
