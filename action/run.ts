/** The step: pushes an image to the registry, and sets it as the image of new backends. */
import { BerthError } from '../client/index.ts';
import { commitLabels } from '../client/tools/commit-labels.ts';
import { digestOfTag, registryUrl } from '../client/tools/registry-access.ts';
import { logInOf } from './access.ts';
import type { Access, LogIn } from './access.ts';
import { currentCommit } from './commit.ts';
import type { Commit } from './commit.ts';
import { readInputs, tokenInput } from './inputs.ts';
import type { Inputs, Source } from './inputs.ts';
import { Failure } from './failure.ts';
import { pushArchive } from './push/archive.ts';
import { buildImage, pushBuild, pushImage } from './push/docker.ts';
import type { DockerPush } from './push/docker.ts';
import { withLogIn } from './push/docker-login.ts';
import { imageBefore, rollBack } from './rollout/rollback.ts';
import { rollOut } from './rollout/rollout.ts';
import type { Verified } from './rollout/rollout.ts';
import { imageSize } from './push/image-size.ts';
import { summaryOf } from './summary.ts';
import type { Workflow } from './workflow/workflow.ts';
import type { Environment } from './workflow/workflow.ts';

interface Step {
  readonly env: Environment;
  readonly workflow: Workflow;
  readonly signal: AbortSignal;
}

/** A step with its inputs, and its access at the start. */
interface Deployment extends Step {
  readonly inputs: Inputs;
  readonly logIn: LogIn;
  readonly access: Access;
  /** `<account>/<service>`. */
  readonly service: string;
  readonly commit: Commit;
}

interface Pushed {
  /** The name in the registry, without a tag. */
  readonly repository: string;
  readonly digest: string;
}

interface Deployed {
  readonly digest: string;
  readonly sizeBytes: number | undefined;
  readonly verified: Verified | undefined;
}

/** Deploys. Rejects with the error to report. */
export async function deploy({ env, workflow, signal }: Step): Promise<void> {
  const startedAt = performance.now();
  // First, because any other code may print the token.
  maskToken(workflow, tokenInput(env));
  const inputs = readInputs(env);
  const logIn = logInOf(inputs, { env, workflow });
  const access = await logIn(signal);
  const service = `${inputs.account}/${inputs.service}`;
  const commit = await currentCommit(env, signal);
  const deployment = { env, workflow, signal, inputs, logIn, access, service, commit };

  const { digest, sizeBytes, verified } = await deployOrRollBack(deployment);
  workflow.setOutput('url', verified?.url ?? '');
  workflow.setOutput('backend-id', verified?.backend_id ?? '');
  const { environment, tags } = inputs;
  const backend = verified?.backend_id;
  const durationMs = performance.now() - startedAt;
  workflow.summary(summaryOf({ service, environment, digest, tags, sizeBytes, backend, durationMs, commit }));
}

/** Pushes the image and sets it. A failure in between is rolled back, too, because the push may move the tag of the environment. */
async function deployOrRollBack(deployment: Deployment): Promise<Deployed> {
  const { workflow, signal, inputs, logIn, access, service } = deployment;
  const { environment, rollbackOnFailure, host } = inputs;
  const previous = rollbackOnFailure ? await imageBefore(access.client, service, { environment, signal }) : undefined;
  let pushed: Pushed | undefined;
  try {
    pushed = await workflow.group('Push the image', async () => await push(deployment));
    const { repository, digest } = pushed;
    workflow.setOutput('digest', digest);
    workflow.setOutput('image', `${repository}@${digest}`);
    const { client, token } = await logIn(signal);
    const sizeBytes = await imageSize(pushed, { token, host, signal });
    const verified = await rollOut({ client, logIn, workflow, inputs, service, digest, signal });
    return { digest, sizeBytes, verified };
  } catch (error) {
    if (rollbackOnFailure) await rollBack({ logIn, workflow, inputs, service, previous, pushed: pushed?.digest });
    throw error;
  }
}

/** Masks the token, and also its part without the account. */
function maskToken(workflow: Workflow, token: string | undefined): void {
  for (const part of [token ?? '', token?.slice(token.indexOf('.') + 1) ?? '']) {
    for (const line of part.split(/\s+/)) if (line.length > 3) workflow.mask(line);
  }
}

/** Pushes or uploads the image. */
async function push(deployment: Deployment): Promise<Pushed> {
  const { access, logIn, signal, inputs, service } = deployment;
  const { source, tags } = inputs;
  if (source.kind === 'archive') {
    // The upload creates the service.
    const digest = await pushArchive(source.path, { client: access.client, service, tags, signal });
    const { client } = await logIn(signal);
    return { repository: await client.imageName(service, { signal }), digest };
  }
  const repository = await imageName(deployment);
  const digest = await pushWithDocker(deployment, repository, source);
  return { repository, digest };
}

/** Builds first and then logs in again, because a build may take longer than a deploy token is valid. */
async function pushWithDocker(
  deployment: Deployment,
  repository: string,
  source: Exclude<Source, { kind: 'archive' }>,
): Promise<string> {
  const { access, logIn, env, workflow, signal, inputs, service, commit } = deployment;
  const { tags } = inputs;
  const registry = repository.slice(0, repository.indexOf('/'));
  const show = async (work: () => Promise<number>) => await workflow.withoutCommands(work);
  const digestOf = async (tag: string) => {
    const { token } = await logIn(signal);
    const send = async (url: string, init: RequestInit) => await fetch(url, { ...init, signal });
    const found = await digestOfTag(tag, {
      url: registryUrl(registry, inputs.host),
      name: service,
      token,
      send,
      signal,
    });
    if (found === undefined) throw new Failure(`The registry does not have ${repository}:${tag} after the push`);
    return found;
  };
  const withDocker = async <T>({ token }: Access, work: (push: DockerPush) => Promise<T>) =>
    await withLogIn({ registry, account: inputs.account, token }, { env, workflow }, async (dockerEnv) => {
      return await work({ env: dockerEnv, signal, repository, tags, digestOf, show });
    });
  if (source.kind === 'image') return await withDocker(access, async (push) => await pushImage(source.image, push));
  const build = { ...source.build, labels: commitLabels(commit) };
  await withDocker(access, async (push) => await buildImage(build, push));
  return await withDocker(await logIn(signal), async (push) => await pushBuild(build, push));
}

/** The name of the service's images in the registry. Creates the service if it does not exist. */
async function imageName({ access: { client }, service, signal, workflow }: Deployment): Promise<string> {
  try {
    return await client.imageName(service, { signal });
  } catch (error) {
    if (!(error instanceof BerthError && error.code === 'ServiceNotFound')) throw error;
  }
  try {
    await client.createService(service, { signal });
  } catch (error) {
    if (!(error instanceof BerthError && error.code === 'Forbidden')) throw error;
    const how = `Create it once with "berth service create", or use a token with the scope manage`;
    throw new Failure(`There is no service ${service}. ${how}`, { cause: error });
  }
  workflow.info(`Created the service ${service}`);
  return await client.imageName(service, { signal });
}
