/** Restores the image that new backends ran before the push. */
import { BerthError } from '../../client/index.ts';
import type { BerthClient } from '../../client/index.ts';
import type { LogIn } from '../access.ts';
import { Failure, messageOf } from '../failure.ts';
import type { Inputs } from '../inputs.ts';
import type { Workflow } from '../workflow/workflow.ts';

/** The image that new backends of an environment run. */
export interface EnvironmentImage {
  /** The tag or digest of the environment. */
  readonly reference: string;
  /** Undefined if no image has the tag. */
  readonly digest: string | undefined;
}

export interface Rollback {
  readonly logIn: LogIn;
  readonly workflow: Workflow;
  readonly inputs: Inputs;
  /** `<account>/<service>`. */
  readonly service: string;
  readonly previous: EnvironmentImage | undefined;
  /** The digest of the new image. Undefined if the push has not ended. */
  readonly pushed: string | undefined;
}

/** After a cancellation, the runner waits for 7.5 s before it kills the step. */
export const rollbackTimeoutMs = 5000;

/** Restores the previous image, unless another deployment has set a different one. The push alone may have moved the environment's tag. */
export async function rollBack({ logIn, workflow, inputs, service, previous, pushed }: Rollback): Promise<void> {
  const { environment, tags } = inputs;
  if (previous?.digest === undefined) {
    if (pushed !== undefined) workflow.warning(`${service} has no previous image, so ${pushed} stays`);
    return;
  }
  const options = { timeoutMs: rollbackTimeoutMs };
  try {
    const { client } = await logIn(AbortSignal.timeout(rollbackTimeoutMs));
    const { reference, digest } = await environmentImage(client, service, { environment, ...options });
    const isSame = reference === previous.reference;
    if (isSame && digest === previous.digest) return;
    if (reference !== pushed && !(isSame && tags.includes(reference))) {
      workflow.warning(`No rollback: another deployment has set ${service}/${environment} to ${reference}`);
      return;
    }
    await client.setImage(service, previous.digest, { environment, ...options });
    workflow.notice(`Rolled back: new backends of ${service}/${environment} run ${previous.digest} again`);
  } catch (error) {
    workflow.error(`The rollback failed, so new backends may run the new image: ${messageOf(error)}`);
  }
}

/** The image before the push; undefined if there is no service. */
export async function imageBefore(
  client: BerthClient,
  service: string,
  options: { readonly environment: string; readonly signal: AbortSignal },
): Promise<EnvironmentImage | undefined> {
  try {
    return await environmentImage(client, service, options);
  } catch (error) {
    if (error instanceof BerthError && error.code === 'ServiceNotFound') return undefined;
    if (error instanceof BerthError && error.code === 'Forbidden') {
      throw new Failure('rollback-on-failure: The token needs the scope read', { cause: error });
    }
    throw error;
  }
}

async function environmentImage(
  client: BerthClient,
  service: string,
  { environment, ...options }: { environment: string; signal?: AbortSignal; timeoutMs?: number },
): Promise<EnvironmentImage> {
  const { environments } = await client.service(service, options);
  const found = environments.find(({ name }) => name === environment);
  if (!found) throw new Failure(`environment: The service ${service} has no environment "${environment}"`);
  const reference = found.image_tag;
  if (reference.startsWith('sha256:')) return { reference, digest: reference };
  for await (const { tag, digest } of client.images(service, { pageSize: 100, ...options })) {
    if (tag === reference) return { reference, digest };
  }
  return { reference, digest: undefined };
}
