/** Images of Node.js applications, with packages of this project. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Image } from '../../../setup/image.ts';
import { folderEntries, nodeBase } from '../../../setup/sample-image.ts';

const installed = fileURLToPath(new URL('../../../node_modules', import.meta.url));

const manifest = z.object({ dependencies: z.record(z.string(), z.string()).default({}) });

/** The image of the application in a folder, whose program is `server.js`. */
export async function nodeImage({
  tag,
  folder,
  packages,
}: {
  tag: string;
  folder: string;
  packages: string[];
}): Promise<Image> {
  const node = await nodeBase();
  const names = await withDependencies(packages);
  const libraries = names.map((name) => folderEntries(join(installed, name), `/app/node_modules/${name}`));
  return {
    tag,
    layers: [node.layer, (await Promise.all(libraries)).flat(), await folderEntries(folder, '/app')],
    config: {
      Cmd: ['/usr/bin/node', '/app/server.js'],
      Env: node.env,
      User: '1000:1000',
      WorkingDir: '/app',
    },
  };
}

/** Packages and all their dependencies. npm installs these in the same folder, unless two packages need different releases. */
async function withDependencies(packages: readonly string[]): Promise<string[]> {
  const all = new Set(packages);
  for (const name of all) {
    const { dependencies } = manifest.parse(JSON.parse(await readFile(join(installed, name, 'package.json'), 'utf8')));
    for (const each of Object.keys(dependencies)) all.add(each);
  }
  return [...all];
}
