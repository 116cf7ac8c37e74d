/**
 * Builds the npm package of the client: ES modules with types, without dependencies. `node client/build.ts [folder]`, by default
 * into `client/dist`.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '..');

await build(process.argv[2] ?? join(import.meta.dirname, 'dist'));

async function build(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const emit = ['--noEmit', 'false', '--declaration', '--rewriteRelativeImportExtensions'];
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [compiler, '-p', import.meta.dirname, ...emit, '--outDir', folder]);
  for (const name of await readdir(folder)) if (name.endsWith('.d.ts')) await rewriteImports(join(folder, name));
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(await packageJson(), undefined, 2)}\n`);
  await copyFile(join(import.meta.dirname, 'README.md'), join(folder, 'README.md'));
  await copyFile(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

/** The compiler rewrites the imports of the code, and not those of the types. */
async function rewriteImports(path: string): Promise<void> {
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
}

async function packageJson(): Promise<object> {
  const { version, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Record<string, string>;
  return {
    name: 'berth-client',
    version,
    description: "Client of Berth's service API, for browsers and Node",
    license,
    type: 'module',
    sideEffects: false,
    exports: { '.': { types: './index.d.ts', default: './index.js' } },
    files: ['*.js', '*.d.ts'],
    engines: { node: '>=20' },
  };
}
