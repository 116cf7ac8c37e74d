/** Builds images with buildx, or with docker if there is no buildx, and pushes them. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../failure.ts';
import type { Build } from '../inputs.ts';
import { runProgram, showProgram } from './program.ts';
import type { ProgramOptions } from './program.ts';

/** The target of a push. */
export interface DockerPush extends ProgramOptions {
  /** The name in the registry, without a tag. */
  readonly repository: string;
  readonly tags: readonly string[];
  /** The digest of the image with a tag in the registry. */
  readonly digestOf: (tag: string) => Promise<string>;
  /** Runs a program whose output is not trusted, with workflow commands disabled. */
  readonly show: (work: () => Promise<number>) => Promise<number>;
}

/** A build, with the labels of its image. */
export interface LabelledBuild extends Build {
  readonly labels: Readonly<Record<string, string>>;
}

/** Builds an image. buildx keeps it in its cache, from which `pushBuild` pushes it. */
export async function buildImage(build: LabelledBuild, push: DockerPush): Promise<void> {
  const isBuildx = await hasBuildx(push);
  if (!isBuildx && build.platforms.length > 1) throw new Failure('platforms: More than one platform needs buildx');
  const command = isBuildx ? ['buildx', 'build', '--progress', 'plain', '--output', 'type=cacheonly'] : ['build'];
  await runBuild([...command, ...buildArguments(build, push)], push);
}

/** Pushes an image that `buildImage` has built, with all tags. Returns its digest. */
export async function pushBuild(build: LabelledBuild, push: DockerPush): Promise<string> {
  return (await hasBuildx(push)) ? await pushWithBuildx(build, push) : await pushTags(push);
}

/** Pushes an image of the engine with all tags. Returns its digest. */
export async function pushImage(image: string, push: DockerPush): Promise<string> {
  for (const target of targets(push)) {
    const { code, stderr } = await runProgram('docker', ['tag', '--', image, target], push);
    if (code !== 0) throw new Failure(`image: Docker does not have "${image}": ${stderr.trim()}`);
  }
  return await pushTags(push);
}

async function hasBuildx(push: DockerPush): Promise<boolean> {
  return (await runProgram('docker', ['buildx', 'version'], push)).code === 0;
}

async function pushWithBuildx(build: LabelledBuild, push: DockerPush): Promise<string> {
  const folder = await mkdtemp(join(push.env['RUNNER_TEMP'] || tmpdir(), 'berth-build-'));
  try {
    const metadata = join(folder, 'metadata.json');
    const command = ['buildx', 'build', '--push', '--progress', 'plain', '--metadata-file', metadata];
    await runBuild([...command, ...buildArguments(build, push)], push);
    const digest = (JSON.parse(await readFile(metadata, 'utf8')) as Record<string, unknown>)['containerimage.digest'];
    if (typeof digest !== 'string') throw new Failure('docker buildx did not report the pushed digest');
    return digest;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runBuild(command: readonly string[], push: DockerPush): Promise<void> {
  if ((await push.show(() => showProgram('docker', command, push))) !== 0) {
    throw new Failure('The build failed, see its output');
  }
}

function buildArguments({ file, platforms, buildArgs, labels, context }: LabelledBuild, push: DockerPush): string[] {
  return [
    ...targets(push).flatMap((target) => ['--tag', target]),
    ...(file === undefined ? [] : ['--file', file]),
    ...(platforms.length === 0 ? [] : ['--platform', platforms.join(',')]),
    ...buildArgs.flatMap((each) => ['--build-arg', each]),
    ...Object.entries(labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]),
    '--',
    context,
  ];
}

async function pushTags(push: DockerPush): Promise<string> {
  for (const target of targets(push)) {
    if ((await push.show(() => showProgram('docker', ['push', target], push))) !== 0) {
      throw new Failure(`docker push of ${target} failed, see its output`);
    }
  }
  const [tag = ''] = push.tags;
  return await push.digestOf(tag);
}

function targets({ repository, tags }: DockerPush): string[] {
  return tags.map((tag) => `${repository}:${tag}`);
}
