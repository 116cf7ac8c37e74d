/** The image of the sample application. It contains this machine's Node.js, because a base image may not be available. */
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from './command.ts';
import type { Image, LayerEntry } from './image.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Programs look up their user and group, and the image has no base system with these files. */
const accountFiles: readonly LayerEntry[] = [
  { path: '/etc/passwd', text: 'root:x:0:0:root:/tmp:/\nnode:x:1000:1000:node:/tmp:/\n' },
  { path: '/etc/group', text: 'root:x:0:\nnode:x:1000:\n' },
  { path: '/tmp', folder: true, mode: 0o1777 },
];

/** The image of `examples/pad`: Node.js and its libraries in one layer, the application in another. */
export async function sampleImage(tag: string): Promise<Image> {
  const node = await nodeBase();
  return {
    tag,
    layers: [node.layer, [...(await folderEntries(join(root, 'examples/pad'), '/app')), ...(await webSocketLibrary())]],
    config: {
      Cmd: ['/usr/bin/node', '/app/server.js'],
      Env: node.env,
      ExposedPorts: { '8080/tcp': {} },
      Labels: {
        'org.opencontainers.image.title': 'pad',
        'org.opencontainers.image.description': 'A whiteboard to share, the sample application of Berth',
        'org.opencontainers.image.licenses': 'Apache-2.0',
      },
      User: '1000:1000',
      WorkingDir: '/app',
    },
  };
}

/** What every image of a Node.js application begins with: Node.js, its libraries, and the variables with which it finds them. */
export async function nodeBase(): Promise<{ readonly layer: LayerEntry[]; readonly env: string[] }> {
  const libraries = await sharedLibraries(process.execPath);
  const folders = [...new Set(libraries.map((path) => dirname(path)))];
  return {
    layer: [
      ...accountFiles,
      { path: '/usr/bin/node', file: process.execPath, mode: 0o755 },
      ...libraries.map((path) => ({ path, file: path, mode: 0o755 })),
    ],
    env: ['PATH=/usr/bin', 'HOME=/tmp', 'NODE_ENV=production', `LD_LIBRARY_PATH=${folders.join(':')}`],
  };
}

/** The absolute paths of a program's shared libraries and of its loader, as ldd prints them. */
async function sharedLibraries(program: string): Promise<string[]> {
  const lines = (await runCommand('ldd', [program], { env: { LC_ALL: 'C' } })).split('\n');
  const missing = lines.find((line) => line.includes('not found'));
  if (missing) throw new Error(`Cannot pack Node.js into an image, a library is missing: ${missing.trim()}`);
  return lines.flatMap((line) => /(?:^|\s)(\/\S+) \(0x/.exec(line)?.[1] ?? []).sort();
}

/** The only dependency of the application. */
async function webSocketLibrary(): Promise<LayerEntry[]> {
  return await folderEntries(join(root, 'node_modules/ws'), '/app/node_modules/ws');
}

/** The source files of an application in a folder, without its node_modules. */
export async function folderEntries(folder: string, target: string): Promise<LayerEntry[]> {
  const found = await readdir(folder, { withFileTypes: true, recursive: true });
  return found
    .filter((entry) => entry.isFile() && /\.(?:js|mjs|json|html|css)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length))
    .filter((path) => !path.startsWith('/node_modules/'))
    .map((path) => ({ path: `${target}${path}`, file: `${folder}${path}` }));
}
