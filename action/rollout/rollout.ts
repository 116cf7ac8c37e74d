/** Sets the image of an environment, and waits until a backend of it is ready. */
import { BerthError } from '../../client/index.ts';
import type { BerthClient, ConnectResponse } from '../../client/index.ts';
import type { LogIn } from '../access.ts';
import { Failure, messageOf } from '../failure.ts';
import type { Inputs } from '../inputs.ts';
import type { Workflow } from '../workflow/workflow.ts';
import { rollbackTimeoutMs } from './rollback.ts';

export interface Rollout {
  readonly client: BerthClient;
  /** For what follows a failure: until then, the deploy token of `client` may have expired. */
  readonly logIn: LogIn;
  readonly workflow: Workflow;
  readonly inputs: Inputs;
  /** `<account>/<service>`. */
  readonly service: string;
  readonly digest: string;
  readonly signal: AbortSignal;
}

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
  return inputs.waitForReady ? await verify(rollout) : undefined;
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

function explain(error: unknown): never {
  if (!(error instanceof BerthError && error.code === 'Forbidden')) throw error;
  throw new Failure('wait-for-ready: The token needs the scope connect', { cause: error });
}
