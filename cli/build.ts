/** Bundles the command line into one file, and makes its npm package: `node cli/build.ts [FOLDER]`, by default in `cli/dist`. */
import { chmod, copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..');

await build(process.argv[2] ?? join(import.meta.dirname, 'dist'));

async function build(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const file = join(folder, 'berth.mjs');
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'berth.ts'),
    platform: 'node',
    transform: { target: 'node20' },
  });
  await bundle.write({ file, format: 'esm', codeSplitting: false, minify: true, comments: { legal: true } });
  await bundle.close();
  await chmod(file, 0o755);
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(await packageJson(), undefined, 2)}\n`);
  await copyFile(join(import.meta.dirname, 'README.md'), join(folder, 'README.md'));
  await copyFile(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

async function packageJson(): Promise<object> {
  const { version, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Record<string, string>;
  return {
    name: 'berth-cli',
    version,
    description: 'Command line of Berth: push container images, connect to session backends, and manage them',
    license,
    type: 'module',
    bin: { berth: 'berth.mjs' },
    files: ['berth.mjs'],
    engines: { node: '>=20.12' },
  };
}
