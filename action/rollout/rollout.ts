/** Sets the image of an environment, waits until a backend of it is ready, and restores the previous image if none becomes ready. */
import { BerthError } from '../../client/index.ts';
import type { BerthClient, ConnectResponse } from '../../client/index.ts';
import type { LogIn } from '../access.ts';
import { Failure } from '../failure.ts';
import type { Inputs } from '../inputs.ts';
import type { Workflow } from '../workflow/workflow.ts';

export interface Rollout {
  readonly client: BerthClient;
  /** For what follows a failure: until then, the deploy token of `client` may have expired. */
  readonly logIn: LogIn;
  readonly workflow: Workflow;
  readonly inputs: Inputs;
  /** `<account>/<service>`. */
  readonly service: string;
  readonly digest: string;
  /** The digest of the previous image. Undefined: no rollback. */
  readonly previous: string | undefined;
  readonly signal: AbortSignal;
}

/** After a cancellation, the runner waits for 7.5 s before it kills the step. */
const rollbackTimeoutMs = 5000;

/** Enough for a stack trace. */
const maxLogLines = 50;

/** A log that can be read arrives within seconds. */
const logTimeoutMs = 10_000;

/** The backend that has become ready. */
export type Verified = Pick<ConnectResponse, 'backend_id' | 'url'>;

export async function rollOut(rollout: Rollout): Promise<Verified | undefined> {
  const { client, workflow, inputs, service, digest, signal } = rollout;
  const { environment } = inputs;
  await client.setImage(service, digest, { environment, signal });
  workflow.info(`New backends of ${service}/${environment} run ${digest}`);
  if (!inputs.waitForReady) return undefined;
  try {
    return await verify(rollout);
  } catch (error) {
    await rollBack(rollout);
    throw error;
  }
}

/** Connects to a new backend, and waits until it is ready. Requests the digest, because another deployment may set another image. */
async function verify(rollout: Rollout): Promise<Verified> {
  const { client, workflow, inputs, service, digest, signal } = rollout;
  const { environment, readyTimeoutMs } = inputs;
  const session = await client.connect(service, { spawn: { tag: digest } }, { environment, signal }).catch(explain);
  const backend = session.backend_id;
  workflow.info(`Waiting for the backend ${backend}`);
  try {
    await client.waitUntilReady(backend, { timeoutMs: readyTimeoutMs, signal });
    signal.throwIfAborted();
  } catch (error) {
    const failure = await failureOf(rollout, backend, error);
    await abandon(rollout, backend);
    throw failure;
  }
  workflow.info(`The backend ${backend} is ready`);
  return session;
}

/** The failure of a backend that did not become ready. Any other error is returned unchanged. */
async function failureOf({ client, inputs }: Rollout, backend: string, error: unknown): Promise<unknown> {
  const code = error instanceof BerthError ? error.code : undefined;
  if (code !== 'TimedOut' && code !== 'BackendEnded') return error;
  const { problem } = await client.status(backend).catch(() => ({ problem: undefined }));
  const seconds = inputs.readyTimeoutMs / 1000;
  const what = code === 'TimedOut' ? `was not ready within ${seconds} seconds` : 'ended before it was ready';
  return new Failure(`The backend ${backend} ${what}${problem === undefined ? '' : `: ${problem}`}`, { cause: error });
}

/** Prints the log of a backend to which no client will connect, and stops it. Only warns, because the caller already reports a failure. */
async function abandon({ logIn, workflow, signal }: Rollout, backend: string): Promise<void> {
  try {
    const { client } = await logIn(AbortSignal.timeout(rollbackTimeoutMs));
    if (!signal.aborted) {
      await workflow.group(`The last lines of the log of ${backend}`, async () => {
        for (const line of await lastLogLines(client, backend)) workflow.info(line);
      });
    }
    await client.stop(backend, { hard: true, timeoutMs: rollbackTimeoutMs });
  } catch (error) {
    if (error instanceof BerthError && error.code === 'BackendNotRunning') return;
    workflow.warning(`The backend ${backend} was not stopped: ${messageOf(error)}`);
  }
}

/** Reads the last lines. Reports an error as a line, because the caller already reports another failure. */
async function lastLogLines(client: BerthClient, backend: string): Promise<string[]> {
  const lines: string[] = [];
  try {
    for await (const { line } of client.logs(backend, { follow: false, signal: AbortSignal.timeout(logTimeoutMs) })) {
      lines.push(line);
      if (lines.length > maxLogLines) lines.shift();
    }
    return lines;
  } catch (error) {
    return [...lines, `(The log cannot be read: ${messageOf(error)})`];
  }
}

/** Restores the previous image, unless another deployment has set a different one. */
async function rollBack({ logIn, workflow, inputs, service, digest, previous }: Rollout): Promise<void> {
  if (previous === undefined) {
    if (inputs.rollbackOnFailure) workflow.warning(`${service} has no previous image, so ${digest} stays`);
    return;
  }
  const { environment } = inputs;
  const options = { timeoutMs: rollbackTimeoutMs };
  try {
    const { client } = await logIn(AbortSignal.timeout(rollbackTimeoutMs));
    const current = await environmentImage(client, service, { environment, ...options });
    if (current !== digest) {
      workflow.warning(`No rollback: another deployment has set ${service}/${environment} to ${current}`);
      return;
    }
    await client.setImage(service, previous, { environment, ...options });
    workflow.notice(`Rolled back: new backends of ${service}/${environment} run ${previous} again`);
  } catch (error) {
    workflow.error(`The rollback failed, so new backends still run ${digest}: ${messageOf(error)}`);
  }
}

/**
 * The digest that new backends of an environment run; undefined if there is none. Call it before the push, which may move the tag of the
 * environment.
 */
export async function digestBefore(
  client: BerthClient,
  service: string,
  options: { readonly environment: string; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const current = await environmentImage(client, service, options).catch((error: unknown) => {
    if (error instanceof BerthError && error.code === 'ServiceNotFound') return undefined;
    if (error instanceof BerthError && error.code === 'Forbidden') {
      throw new Failure('rollback-on-failure: The token needs the scope read', { cause: error });
    }
    throw error;
  });
  if (current === undefined || current.startsWith('sha256:')) return current;
  for await (const { tag, digest } of client.images(service, { pageSize: 100, signal: options.signal })) {
    if (tag === current) return digest;
  }
  return undefined;
}

async function environmentImage(
  client: BerthClient,
  service: string,
  { environment, ...options }: { environment: string; signal?: AbortSignal; timeoutMs?: number },
): Promise<string> {
  const { environments } = await client.service(service, options);
  const found = environments.find(({ name }) => name === environment);
  if (!found) throw new Failure(`environment: The service ${service} has no environment "${environment}"`);
  return found.image_tag;
}

function explain(error: unknown): never {
  if (!(error instanceof BerthError && error.code === 'Forbidden')) throw error;
  throw new Failure('wait-for-ready: The token needs the scope connect', { cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
