/** `berth push`. */
import { resolve } from 'node:path';
import { Command, Option } from '@commander-js/extra-typings';
import { BerthError } from '../../client/index.ts';
import { commitLabels } from '../../client/tools/commit-labels.ts';
import { several } from '../arguments.ts';
import { notFound, usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { safeText } from '../output/safe-text.ts';
import { fields } from '../output/table.ts';
import { pushArchive } from '../push/archive.ts';
import { buildImage, pushImage, tagImage } from '../push/docker.ts';
import { gitCommit } from '../push/git.ts';
import { digestOf } from '../registry.ts';
import type { Session } from '../session.ts';

interface PushOptions {
  readonly file?: string;
  readonly context?: string;
  readonly buildContext?: string[];
  readonly buildArg?: string[];
  readonly platform?: string;
  readonly tag?: string;
  readonly includeGitCommit?: true;
  readonly allowDirty?: true;
  readonly archive?: string;
  readonly archiveImage?: string;
  readonly create?: true;
}

/** What was pushed. */
interface Pushed {
  readonly service: string;
  readonly tag: string;
  readonly digest: string;
}

export function pushCommand(session: Session) {
  const command = new Command('push')
    .summary('push an image')
    .description(
      'Builds an image from a Dockerfile and pushes it for a service, or pushes an existing image, or an archive without Docker. New backends run the image if their environment uses its tag.',
    )
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .argument('[image]', 'an existing image in Docker (default: build one)')
    .option('-f, --file <path>', 'the Dockerfile')
    .addOption(new Option('-d, --dockerfile <path>').hideHelp())
    .option('-c, --context <folder>', 'the folder of the build (default: the current folder)')
    .option('-b, --build-context <name=path>', 'another folder of the build, may be repeated', several)
    .option(
      '--build-arg <name=value>',
      'an argument of the build; NAME alone: the value of this environment, may be repeated',
      several,
    )
    .option('--platform <platform>', 'the platform of the build, such as linux/amd64')
    .option('-t, --tag <tag>', 'the tag to set (default: latest; of an archive: the tags that it contains)')
    .option('-g, --include-git-commit', 'label the image with the git commit; refuses a working tree with changes')
    .option('--allow-dirty', 'with --include-git-commit: allow uncommitted changes')
    .option(
      '--archive <path>',
      'push an archive of "docker save", or an OCI layout (a folder or an archive), without Docker; -: standard input',
    )
    .option('--archive-image <image>', 'the name, tag or digest of the image, if the archive contains several')
    .option('--create', 'create the service if it does not exist')
    .action(async (service, image, { dockerfile, ...options }) => {
      await push(session, {
        service,
        image,
        options: { ...(dockerfile !== undefined && { file: dockerfile }), ...options },
      });
    });
  return withExamples(
    command,
    'push draw',
    'push draw --file deploy/Dockerfile --context . --include-git-commit',
    'push draw draw:v2 --tag v2',
    'push draw --archive ./oci-layout --tag v2',
  );
}

interface PushRequest {
  readonly service: string;
  readonly image: string | undefined;
  readonly options: PushOptions;
}

async function push(session: Session, { service: name, image, options }: PushRequest): Promise<void> {
  checkOptions(image, options);
  const service = await session.service(name);
  const pushed =
    options.archive === undefined
      ? await pushWithDocker(session, { service, image, options })
      : await pushFromArchive(session, service, { ...options, archive: options.archive });
  session.output.data(pushed, fields({ service, tag: pushed.tag, digest: pushed.digest }));
  session.output.message(
    `Connect to it with "berth connect ${safeText(service)}/default --tag ${safeText(pushed.tag)}"`,
  );
}

/** Refuses options that would have no effect. */
function checkOptions(image: string | undefined, options: PushOptions): void {
  const { archive, allowDirty, archiveImage, includeGitCommit } = options;
  const build = (['file', 'context', 'buildContext', 'buildArg', 'platform', 'includeGitCommit'] as const).find(
    (option) => options[option] !== undefined,
  );
  if (image !== undefined && archive !== undefined) throw usageError('Push either an image or --archive');
  if ((image !== undefined || archive !== undefined) && build !== undefined) {
    throw usageError(
      `--${kebab(build)} is an option of a build, and ${archive === undefined ? 'the image' : 'the archive'} is already built`,
    );
  }
  if (archiveImage !== undefined && archive === undefined) throw usageError('--archive-image needs --archive');
  if (allowDirty && !includeGitCommit) throw usageError('--allow-dirty needs --include-git-commit');
}

async function pushWithDocker(session: Session, { service, image, options }: PushRequest): Promise<Pushed> {
  const { io, signal, output } = session;
  const { tag = 'latest', context = '.' } = options;
  const at = { env: io.env, cwd: io.cwd, signal };
  const folder = resolve(io.cwd, context);
  const labels = options.includeGitCommit
    ? commitLabels(await gitCommit({ ...at, cwd: folder, allowDirty: options.allowDirty ?? false }))
    : {};
  const repository = await imageName(session, service, options.create ?? false);
  const target = `${repository}:${tag}`;
  if (image === undefined) {
    const { file, buildContext = [], buildArg = [], platform } = options;
    await buildImage(target, { file, context, platform, labels, buildContexts: buildContext, buildArgs: buildArg }, at);
  } else await tagImage(image, target, at);
  output.message(`Pushing ${safeText(target)}`);
  const { token } = await session.login();
  const [account = ''] = service.split('/');
  await pushImage(target, { account, token }, at);
  return { service, tag, digest: await digestOf(session, service, tag) };
}

async function pushFromArchive(
  session: Session,
  service: string,
  options: PushOptions & { archive: string },
): Promise<Pushed> {
  // The upload creates the service, so a mistyped name must be detected before.
  await imageName(session, service, options.create ?? false);
  const image = await pushArchive(session, service, options);
  return { service, tag: image.tag, digest: image.digest };
}

/** The name of a service's images in the registry. Creates the service if that is allowed. */
async function imageName(session: Session, service: string, mayCreate: boolean): Promise<string> {
  const client = await session.client();
  const { signal } = session;
  try {
    return await client.imageName(service, { signal });
  } catch (error) {
    if (!(error instanceof BerthError && error.code === 'ServiceNotFound')) throw error;
    await allowCreation(session, service, mayCreate);
    await client.createService(service, { signal });
    session.output.message(`Created the service ${safeText(service)}`);
    return await client.imageName(service, { signal });
  }
}

async function allowCreation({ prompts }: Session, service: string, mayCreate: boolean): Promise<void> {
  if (mayCreate) return;
  const isAllowed =
    prompts.canAsk &&
    (await prompts.confirm({ message: `There is no service ${service}. Create it?`, instead: '--create' }));
  if (isAllowed) return;
  const hint = 'Create it with "berth service create", or push with --create';
  throw notFound('ServiceNotFound', `There is no service "${service}"`, hint);
}

function kebab(option: string): string {
  return option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
