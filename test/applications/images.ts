/** Builds the images of the applications from their Dockerfiles, without network, with the builder of the engine. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { runCommand, tryCommand } from '../../setup/command.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { debianRoot, packagesFolder } from '../kit/packages/application-packages.ts';
import type { Application, Base } from './application.ts';
import { packagesOf } from './packages.ts';

/** The images that the Dockerfiles build upon. */
const imageOf: Readonly<Record<Base, string>> = {
  debian: 'berth-test/debian',
  node: 'berth-test/node',
  python: 'berth-test/python',
};

/** Where Node.js and Python look for packages, wherever a program is. */
const packagesAt = { node: '/node_modules', python: '/usr/local/lib/python3.11/dist-packages' } as const;

/** Whether all that the images are made of is installed. */
export async function hasPackages(): Promise<boolean> {
  const found = await Promise.all([debianRoot(), ...Object.values(packagesOf).map(packagesFolder)]);
  return found.every((each) => each !== undefined);
}

/** Builds the image of an application upon its base, and returns its tag. */
export async function buildApplication({ host }: TestEngine, { name }: Application): Promise<string> {
  const tag = `berth-test/application-${name}`;
  await build(host, join(import.meta.dirname, name), tag);
  return tag;
}

/** Makes a base, unless the engine has it. Those with packages are built upon that of Debian. */
export async function ensureBase({ host }: TestEngine, base: Base): Promise<void> {
  const env = { DOCKER_HOST: host };
  const image = imageOf[base];
  // The folders are named for what is in them.
  const parts = [await debianRoot(), base === 'debian' ? '' : await packagesFolder(packagesOf[base]), process.execPath];
  if (parts.includes(undefined)) throw new Error('The packages of the applications are not installed: run npm test');
  const mark = createHash('sha256').update(parts.join(' ')).digest('hex').slice(0, 12);
  if ((await tryCommand('docker', ['image', 'inspect', `${image}:${mark}`], { env })).code === 0) return;
  const [root = '', packages = ''] = parts;
  if (base === 'debian') await runCommand('docker', ['import', '-', image], { env, input: createReadStream(root) });
  else await buildWithPackages(host, base, packages);
  await runCommand('docker', ['tag', image, `${image}:${mark}`], { env });
}

/** Sends the packages to the engine as they lie on the disk: a copy of tens of thousands of files takes long. */
async function buildWithPackages(host: string, base: 'node' | 'python', packages: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-base-'));
  try {
    const node = base === 'node' ? 'COPY node /usr/local/bin/node\n' : '';
    const dockerfile = `FROM ${imageOf.debian}\n${node}COPY ${basename(packages)} ${packagesAt[base]}\n`;
    await writeFile(join(folder, 'Dockerfile'), dockerfile);
    if (base === 'node') await cp(process.execPath, join(folder, 'node'));
    const context = `tar -c -C '${folder}' . -C '${dirname(packages)}' '${basename(packages)}'`;
    const command = `${context} | docker build --quiet --network none --tag ${imageOf[base]} -`;
    await runCommand('sh', ['-c', command], { env: builderOf(host) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function build(host: string, folder: string, tag: string): Promise<void> {
  const args = ['build', '--quiet', '--network', 'none', '--tag', tag, folder];
  await runCommand('docker', args, { env: builderOf(host) });
}

/** The builder of the engine itself: BuildKit would ask a registry for the base. */
function builderOf(host: string) {
  return { DOCKER_HOST: host, DOCKER_BUILDKIT: '0' };
}
