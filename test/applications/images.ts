/** Builds the images of the applications from their Dockerfiles, without network, with the builder of the engine. */
import { createHash, randomUUID } from 'node:crypto';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createReadStream } from 'node:fs';
import { runCommand, tryCommand } from '../../setup/command.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { debianRoot, packagesFolder } from '../kit/packages/application-packages.ts';
import { cachedPath } from '../kit/packages/cached.ts';
import type { Application } from './application.ts';

/** The images that the Dockerfiles build upon. */
const debianImage = 'berth-test/debian';
const nodeImage = 'berth-test/node';

/** Builds the image of an application, and returns its tag. */
export async function buildApplication(engine: TestEngine, { name, packages }: Application): Promise<string> {
  await ensureBases(engine);
  const tag = `berth-test/application-${name}`;
  await using context = await openContext();
  await cp(join(import.meta.dirname, name), context.path, { recursive: true });
  const folder = packages && (await packagesFolder(packages));
  // Links instead of copies: thousands of files.
  if (folder !== undefined) await runCommand('cp', ['-al', folder, join(context.path, basename(folder))]);
  await build(engine, context.path, tag);
  return tag;
}

async function ensureBases(engine: TestEngine): Promise<void> {
  const root = await debianRoot();
  if (root === undefined) throw new Error('The small Debian is not made: run npm test');
  const env = { DOCKER_HOST: engine.host };
  // Its folder is named for what is in it.
  const mark = createHash('sha256')
    .update(`${dirname(root)} ${process.execPath}`)
    .digest('hex')
    .slice(0, 12);
  const { code } = await tryCommand('docker', ['image', 'inspect', `${nodeImage}:${mark}`], { env });
  if (code === 0) return;
  await runCommand('docker', ['import', '-', debianImage], { env, input: createReadStream(root) });
  await using context = await openContext();
  await cp(process.execPath, join(context.path, 'node'));
  const dockerfile = `FROM ${debianImage}\nCOPY node /usr/local/bin/node\n`;
  await writeFile(join(context.path, 'Dockerfile'), dockerfile);
  await build(engine, context.path, nodeImage);
  await runCommand('docker', ['tag', nodeImage, `${nodeImage}:${mark}`], { env });
}

async function build(engine: TestEngine, folder: string, tag: string): Promise<void> {
  // The builder of the engine itself: BuildKit would ask a registry for the base.
  const env = { DOCKER_HOST: engine.host, DOCKER_BUILDKIT: '0' };
  await runCommand('docker', ['build', '--quiet', '--network', 'none', '--tag', tag, folder], { env });
}

/** A folder beside the packages, so that their files can be linked instead of copied. */
async function openContext(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = join(cachedPath('contexts'), randomUUID());
  await mkdir(path, { recursive: true });
  return { path, [Symbol.asyncDispose]: async () => await rm(path, { recursive: true, force: true }) };
}
